//! NVMe pages against nvme-cli and smartctl.

use std::path::Path;

use drivethru::cli::decode::{Kind, decode, read_input};
use serde_json::{Value, json};

use crate::{Case, Tally, cases, lines};

/// Compares every NVMe case.
pub fn run(root: &Path, tally: &mut Tally) {
    for case in cases(root, "nvme-smart", tally) {
        if let Some(document) = read(tally, "nvme-smart", Kind::NvmeSmart, &case) {
            smart(tally, &case, &document);
        }
    }
    for case in cases(root, "nvme-identify", tally) {
        if let Some(document) = read(tally, "nvme-identify", Kind::NvmeIdentify, &case) {
            identify(tally, &case, &document);
        }
    }
}

fn read(tally: &mut Tally, name: &'static str, kind: Kind, case: &Case) -> Option<Value> {
    let decoded = read_input(&case.bytes).and_then(|b| {
        let guessed = decode(Kind::Auto, &b, None, None)?;
        Ok((decode(kind, &b, None, None)?, guessed))
    });
    match decoded {
        Ok((document, guessed)) => {
            tally.equal(
                name,
                &case.name,
                "kind guessed",
                &guessed["kind"],
                &json!(kind.name()),
            );
            Some(document)
        }
        Err(error) => {
            tally.wrong(name, &case.name, &error.to_string());
            None
        }
    }
}

/// nvme-cli gives 128-bit counters as strings.
fn number(value: &Value) -> Value {
    match value.as_str().and_then(|s| s.parse::<u64>().ok()) {
        Some(number) => json!(number),
        None => value.clone(),
    }
}

fn smart(tally: &mut Tally, case: &Case, document: &Value) {
    const KIND: &str = "nvme-smart";
    let at = |pointer: &str| document.pointer(pointer).cloned();
    // (nvme-cli, smartctl, ours)
    let plain = [
        ("critical_warning", "critical_warning", "/critical_warning"),
        ("temperature", "", "/composite_kelvin"),
        ("", "temperature", "/temperature/celsius"),
        ("avail_spare", "available_spare", "/available_spare_percent"),
        (
            "spare_thresh",
            "available_spare_threshold",
            "/available_spare_threshold_percent",
        ),
        ("percent_used", "percentage_used", "/percentage_used"),
        (
            "endurance_grp_critical_warning_summary",
            "",
            "/endurance_group_critical_warning",
        ),
        ("data_units_read", "data_units_read", "/data_units_read"),
        ("data_units_written", "data_units_written", "/data_units_written"),
        ("host_read_commands", "host_reads", "/host_read_commands"),
        ("host_write_commands", "host_writes", "/host_write_commands"),
        (
            "controller_busy_time",
            "controller_busy_time",
            "/controller_busy_minutes",
        ),
        ("power_cycles", "power_cycles", "/power_cycles"),
        ("power_on_hours", "power_on_hours", "/power_on_hours"),
        ("unsafe_shutdowns", "unsafe_shutdowns", "/unsafe_shutdowns"),
        ("media_errors", "media_errors", "/media_errors"),
        ("num_err_log_entries", "num_err_log_entries", "/error_log_entries"),
        ("warning_temp_time", "warning_temp_time", "/warning_temp_minutes"),
        (
            "critical_comp_time",
            "critical_comp_time",
            "/critical_temp_minutes",
        ),
        ("thm_temp1_trans_count", "", "/thermal_1_transitions"),
        ("thm_temp2_trans_count", "", "/thermal_2_transitions"),
        ("thm_temp1_total_time", "", "/thermal_1_seconds"),
        ("thm_temp2_total_time", "", "/thermal_2_seconds"),
    ];
    let nvme_cli = case.expect.get("nvme_cli_2.3_json").cloned().unwrap_or_default();
    let smartctl = case
        .expect
        .pointer("/smartctl_7.3/nvme_smart_health_information_log")
        .cloned()
        .unwrap_or_default();
    for (theirs, theirs_too, ours) in plain {
        let Some(value) = at(ours) else { continue };
        if let Some(expected) = nvme_cli.get(theirs) {
            tally.equal(KIND, &case.name, theirs, &value, &number(expected));
        }
        if let Some(expected) = smartctl.get(theirs_too) {
            tally.equal(KIND, &case.name, theirs_too, &value, expected);
        }
    }
    let sensors = at("/sensors")
        .and_then(|s| s.as_array().cloned())
        .unwrap_or_default();
    let mut impossible = false;
    for n in 1..=8u64 {
        let ours = sensors.iter().find(|s| s["sensor"] == json!(n));
        let theirs = nvme_cli
            .get(format!("temperature_sensor_{n}"))
            .and_then(Value::as_i64);
        if ours.is_none() && theirs.is_none() {
            continue;
        }
        let ours = ours.cloned().unwrap_or_default();
        tally.equal(
            KIND,
            &case.name,
            &format!("sensor {n} kelvin"),
            &ours["kelvin"],
            &json!(theirs),
        );
        let celsius = theirs.map(|k| k - 273).unwrap_or_default();
        if (-60..=200).contains(&celsius) {
            tally.equal(
                KIND,
                &case.name,
                &format!("sensor {n}"),
                &ours["celsius"],
                &json!(celsius),
            );
        } else {
            impossible = true;
            tally.equal(
                KIND,
                &case.name,
                &format!("sensor {n}"),
                &ours["celsius"],
                &Value::Null,
            );
            tally.disagreement(
                KIND,
                &case.name,
                &format!("sensor {n}: nvme-cli and smartctl print {celsius} °C; no drive is that cold: unknown, kelvin kept"),
            );
        }
    }
    if let Some(theirs) = smartctl
        .get("temperature_sensors")
        .and_then(Value::as_array)
        .filter(|_| !impossible)
    {
        // smartctl drops the numbers of the sensors and may give null between them.
        let theirs: Vec<_> = theirs.iter().filter(|t| t.is_number()).cloned().collect();
        let ours: Vec<_> = sensors.iter().map(|s| s["celsius"].clone()).collect();
        tally.equal(
            KIND,
            &case.name,
            "temperature_sensors",
            &json!(ours),
            &json!(theirs),
        );
    }
    for (pointer, ours) in [
        ("/smartctl_7.3/temperature/current", "/temperature/celsius"),
        ("/smartctl_7.3/power_cycle_count", "/power_cycles"),
        ("/smartctl_7.3/power_on_time/hours", "/power_on_hours"),
        ("/smartctl_7.3/smart_status/nvme/value", "/critical_warning"),
    ] {
        if let (Some(theirs), Some(ours)) = (case.expect.pointer(pointer), at(ours)) {
            tally.equal(KIND, &case.name, pointer, &ours, theirs);
        }
    }
    for attribute in case
        .expect
        .pointer("/crystaldiskinfo_printed_in_source/attributes")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let ours = [
            "/critical_warning",
            "/composite_kelvin",
            "/available_spare_percent",
            "/available_spare_threshold_percent",
            "/percentage_used",
            "/data_units_read",
            "/data_units_written",
            "/host_read_commands",
            "/host_write_commands",
            "/controller_busy_minutes",
            "/power_cycles",
            "/power_on_hours",
            "/unsafe_shutdowns",
            "/media_errors",
            "/error_log_entries",
        ];
        let raw = attribute["raw48_hex"]
            .as_str()
            .and_then(|s| u64::from_str_radix(s, 16).ok());
        let id = attribute["id"].as_u64().and_then(|id| usize::try_from(id).ok());
        let ours = id
            .and_then(|id| ours.get(id.checked_sub(1)?))
            .and_then(|pointer| at(pointer));
        let (Some(ours), Some(raw)) = (ours, raw) else {
            continue;
        };
        if ours == json!(raw) || nvme_cli.is_null() {
            tally.equal(KIND, &case.name, "CrystalDiskInfo attribute", &ours, &json!(raw));
        } else {
            // The other tools read the very page; they were compared above.
            tally.disagreement(
                KIND,
                &case.name,
                &format!(
                    "attribute {}: CrystalDiskInfo printed {raw} at another time, the page says {ours}",
                    attribute["id"]
                ),
            );
        }
    }
}

fn identify(tally: &mut Tally, case: &Case, document: &Value) {
    const KIND: &str = "nvme-identify";
    let at = |pointer: &str| document.pointer(pointer).cloned();
    for line in lines(&case.expect, "/nvme_cli_2.3_text") {
        if let Some(state) = line.trim_start().strip_prefix("ps ") {
            power_state(tally, case, document, state);
            continue;
        }
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        let (name, value) = (name.trim(), value.trim());
        let text = match name {
            "sn" => Some("/serial"),
            "mn" => Some("/model"),
            "fr" => Some("/firmware"),
            "subnqn" => Some("/subsystem_name"),
            _ => None,
        };
        if let Some(pointer) = text {
            // The part behind the first 512 bytes was never there.
            if let Some(ours) = at(pointer) {
                tally.equal(KIND, &case.name, name, &ours, &json!(value));
            } else if !value.is_empty() {
                tally.wrong(KIND, &case.name, &format!("{name} is missing"));
            }
            continue;
        }
        if name == "ieee" {
            let theirs = u64::from_str_radix(value, 16).unwrap_or_default();
            tally.equal(
                KIND,
                &case.name,
                name,
                &at("/ieee_oui").unwrap_or_default(),
                &json!(theirs),
            );
            continue;
        }
        let theirs = match value.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok(),
            None => value.parse().ok(),
        };
        if let (Some(ours), Some(theirs)) = (at(&format!("/fields/{name}")), theirs) {
            tally.equal(KIND, &case.name, name, &ours, &json!(theirs));
        }
        if let (Some(kelvin), Some(ours)) = (
            theirs,
            at(match name {
                "wctemp" => "/warning_celsius",
                "cctemp" => "/critical_celsius",
                "mntmt" => "/min_thermal_management_celsius",
                "mxtmt" => "/max_thermal_management_celsius",
                _ => "/no such key",
            }),
        ) {
            tally.equal(KIND, &case.name, name, &ours, &json!(kelvin as i64 - 273));
        }
    }
    for (theirs, ours) in [
        ("model_name", "/model"),
        ("serial_number", "/serial"),
        ("firmware_version", "/firmware"),
        ("nvme_ieee_oui_identifier", "/ieee_oui"),
        ("nvme_controller_id", "/controller_id"),
        ("nvme_total_capacity", "/capacity_bytes"),
        ("nvme_unallocated_capacity", "/unallocated_bytes"),
        ("nvme_number_of_namespaces", "/namespaces"),
        ("nvme_version/string", "/version"),
        ("nvme_version/value", "/fields/ver"),
        ("nvme_pci_vendor/id", "/vendor_id"),
        ("nvme_pci_vendor/subsystem_id", "/subsystem_vendor_id"),
    ] {
        let theirs_value = case.expect.pointer(&format!("/smartctl_7.3/{theirs}"));
        if let (Some(theirs_value), Some(ours)) = (theirs_value, at(ours)) {
            tally.equal(KIND, &case.name, theirs, &ours, theirs_value);
        }
    }
}

/// `0 : mp:25.00W operational enlat:100 exlat:100 ...`
fn power_state(tally: &mut Tally, case: &Case, document: &Value, text: &str) {
    const KIND: &str = "nvme-identify";
    let state = text.split_whitespace().next().and_then(|n| n.parse::<u64>().ok());
    let Some(ours) = document
        .pointer("/power_states")
        .and_then(Value::as_array)
        .and_then(|list| list.iter().find(|s| s["state"].as_u64() == state))
    else {
        return;
    };
    let field = |name: &str| text.split_whitespace().find_map(|word| word.strip_prefix(name));
    if let Some(watts) = field("mp:")
        .and_then(|w| w.strip_suffix('W'))
        .and_then(|w| w.parse::<f64>().ok())
    {
        let ours = ours["max_power_uw"].as_u64().unwrap_or_default();
        let rounded = (ours as f64 / 10_000.0).round() / 100.0;
        tally.equal(KIND, &case.name, "mp", &json!(rounded), &json!(watts));
    }
    for (name, key) in [("enlat:", "entry_latency_us"), ("exlat:", "exit_latency_us")] {
        if let Some(theirs) = field(name).and_then(|v| v.parse::<u64>().ok()) {
            tally.equal(KIND, &case.name, name, &ours[key], &json!(theirs));
        }
    }
    let idle = !text.split_whitespace().any(|w| w == "operational");
    tally.equal(
        KIND,
        &case.name,
        "non-operational",
        &ours["non_operational"],
        &json!(idle),
    );
}
