//! ATA pages against smartctl, hdparm, libatasmart and CrystalDiskInfo.

use std::path::Path;

use drivethru::ata::attributes::AttributeTable;
use drivethru::ata::devstat::DeviceStatistics;
use drivethru::ata::identify::{Identify, Rotation};
use drivethru::ata::sct::{SctStatus, TempHistory};
use drivethru::ata::smart::{SmartData, SmartReport, Thresholds};
use drivethru::cli::decode::read_input;
use serde_json::{Value, json};

use crate::{Case, Tally, cases, lines};

/// Compares every ATA kind.
pub fn run(root: &Path, tally: &mut Tally) {
    for kind in ["identify", "identify-swapped", "hdparm-istdout"] {
        for case in cases(root, kind, tally) {
            identify(kind, &case, tally);
        }
    }
    for case in cases(root, "smart-data", tally) {
        smart_data(root, &case, tally);
    }
    for case in cases(root, "smart-thresholds", tally) {
        smart_thresholds(&case, tally);
    }
    for case in cases(root, "sct-status", tally) {
        sct_status(&case, tally);
    }
    for case in cases(root, "sct-temp-history", tally) {
        sct_temp_history(&case, tally);
    }
    for case in cases(root, "devstat", tally) {
        devstat(&case, tally);
    }
    for case in cases(root, "smartctl-json", tally) {
        smartctl_json(&case, tally);
    }
    for case in cases(root, "smartctl-text", tally) {
        smartctl_text(&case, tally);
    }
}

/// One case while it is compared.
struct Compare<'a> {
    kind: &'static str,
    case: &'a str,
    tally: &'a mut Tally,
}

impl Compare<'_> {
    fn equal(&mut self, what: &str, ours: &Value, theirs: &Value) {
        self.tally.equal(self.kind, self.case, what, ours, theirs);
    }

    /// `ours` and `theirs` by JSON pointer; what a tool leaves out must be absent here too.
    fn fields(&mut self, ours: &Value, theirs: &Value, pairs: &[(&str, &str)]) {
        for (our_path, their_path) in pairs {
            self.equal(their_path, &at(ours, our_path), &at(theirs, their_path));
        }
    }

    fn wrong(&mut self, why: &str) {
        self.tally.wrong(self.kind, self.case, why);
    }

    fn disagreement(&mut self, why: &str) {
        self.tally.disagreement(self.kind, self.case, why);
    }
}

/// The value at a pointer, `null` where there is none.
fn at(value: &Value, pointer: &str) -> Value {
    value.pointer(pointer).cloned().unwrap_or(Value::Null)
}

fn first_number(text: &str) -> Value {
    let digits: String = text
        .chars()
        .skip_while(|c| !c.is_ascii_digit())
        .take_while(|c| c.is_ascii_digit() || *c == '.')
        .collect();
    digits.parse::<f64>().map_or(Value::Null, |n| json!(n))
}

// IDENTIFY DEVICE

fn identify(kind: &'static str, case: &Case, tally: &mut Tally) {
    let mut c = Compare {
        kind,
        case: &case.name,
        tally,
    };
    // hdparm's words are text; everything else is binary and passes through.
    let bytes = match read_input(&case.bytes) {
        Ok(bytes) => bytes,
        Err(error) => return c.wrong(&error.to_string()),
    };
    let parsed = Identify::parse(&bytes);
    let identify = match parsed {
        Ok(identify) => identify,
        Err(error) => return c.wrong(&error.to_string()),
    };
    let ours = serde_json::to_value(identify.summary()).unwrap();
    let order = if kind == "identify-swapped" {
        "swapped"
    } else {
        "drive"
    };
    c.equal("byte order", &ours["byte_order"], &json!(order));
    c.equal("believed", &json!(identify.belief().is_believed()), &json!(true));
    identify_smartctl(&mut c, &ours, &case.expect["smartctl_7.3_replay"]);
    identify_hdparm(&mut c, &ours, &case.expect["hdparm_9.65_istdin"]);
    identify_hdparm_text(&mut c, &ours, &lines(&case.expect, "/hdparm_text"));
    if let Some(cdi) = case.expect.get("crystaldiskinfo_printed_in_source") {
        for (key, path) in [
            ("Firmware", "/firmware"),
            ("# of Sectors", "/sectors"),
            ("Queue Depth", "/queue_depth"),
        ] {
            if let Some(text) = cdi.get(key).and_then(Value::as_str) {
                let ours = at(&ours, path);
                let ours = ours.as_str().map_or_else(|| ours.to_string(), str::to_owned);
                c.equal(key, &json!(ours), &json!(text));
            }
        }
    }
}

fn identify_smartctl(c: &mut Compare, ours: &Value, smartctl: &Value) {
    c.fields(
        ours,
        smartctl,
        &[
            ("/model", "/model_name"),
            ("/serial", "/serial_number"),
            ("/firmware", "/firmware_version"),
            ("/sectors", "/user_capacity/blocks"),
            ("/capacity_bytes", "/user_capacity/bytes"),
            ("/logical_sector_bytes", "/logical_block_size"),
            ("/physical_sector_bytes", "/physical_block_size"),
            ("/rotation_rpm", "/rotation_rate"),
            ("/form_factor/code", "/form_factor/ata_value"),
            ("/form_factor/name", "/form_factor/name"),
            ("/trim/supported", "/trim/supported"),
            ("/ata_version/major_bits", "/ata_version/major_value"),
            ("/sata/version", "/sata_version/string"),
            ("/sata/version_bits", "/sata_version/value"),
            ("/smart/supported", "/smart_support/available"),
            ("/smart/enabled", "/smart_support/enabled"),
            ("/security/state_bits", "/ata_security/state"),
            ("/security/enabled", "/ata_security/enabled"),
            ("/security/frozen", "/ata_security/frozen"),
        ],
    );
    if smartctl["trim"]["supported"] == json!(true) {
        c.fields(
            ours,
            smartctl,
            &[
                ("/trim/deterministic", "/trim/deterministic"),
                ("/trim/zeroes", "/trim/zeroed"),
            ],
        );
    }
    // smartctl prints 0 where no minor version is given.
    let minor = ours["ata_version"].get("minor_code").cloned().unwrap_or(json!(0));
    c.equal(
        "/ata_version/minor_value",
        &minor,
        &smartctl["ata_version"]["minor_value"],
    );
    c.equal(
        "/ata_version/string",
        &version_text(&ours["ata_version"]),
        &smartctl["ata_version"]["string"],
    );
    for (our_path, their_path) in [
        ("/sata/max_gbit_s", "/interface_speed/max/string"),
        ("/sata/current_gbit_s", "/interface_speed/current/string"),
    ] {
        let theirs = at(smartctl, their_path);
        match theirs.as_str() {
            Some(text) => c.equal(their_path, &at(ours, our_path), &first_number(text)),
            None if our_path.contains("max") && smartctl.get("sata_version").is_none() => {
                // smartctl prints no speeds without word 222; words 76 and 77 stand for themselves.
            }
            None => c.equal(their_path, &at(ours, our_path), &Value::Null),
        }
    }
    match &smartctl["wwn"] {
        Value::Null => c.equal("/wwn", &at(ours, "/wwn"), &Value::Null),
        wwn if wwn["naa"] == json!(0) && wwn["oui"] == json!(0) && wwn["id"] == json!(0) => {
            c.equal("/wwn", &at(ours, "/wwn"), &Value::Null);
            c.disagreement("the drive announces a World Wide Name of zeros: smartctl and hdparm print it, we call it none");
        }
        _ => c.fields(
            ours,
            smartctl,
            &[
                ("/wwn/naa", "/wwn/naa"),
                ("/wwn/oui", "/wwn/oui"),
                ("/wwn/id", "/wwn/id"),
            ],
        ),
    }
    for (name, ours_path) in [
        ("read_lookahead", "/read_look_ahead"),
        ("write_cache", "/write_cache"),
        ("ata_apm", "/apm"),
        ("ata_aam", "/aam"),
    ] {
        match smartctl.get(name) {
            Some(theirs) => {
                c.equal(name, &at(ours, &format!("{ours_path}/supported")), &json!(true));
                c.equal(
                    name,
                    &at(ours, &format!("{ours_path}/enabled")),
                    &theirs["enabled"],
                );
                for (our_key, their_key) in [("level", "level"), ("recommended", "recommended_level")] {
                    if let Some(value) = theirs.get(their_key) {
                        c.equal(name, &at(ours, &format!("{ours_path}/{our_key}")), value);
                    }
                }
            }
            None => c.equal(name, &at(ours, &format!("{ours_path}/supported")), &json!(false)),
        }
    }
}

/// smartctl's wording of words 80 and 81.
fn version_text(version: &Value) -> Value {
    let major = version["major"].as_str().unwrap_or_default();
    match version["minor"].as_str() {
        Some(minor) if minor.starts_with(major) => json!(minor),
        Some(minor) => json!(format!("{major}, {minor}")),
        None if version.get("minor_code").is_none() => {
            json!(format!("{major} (minor revision not indicated)"))
        }
        None => json!(format!(
            "{major} (unknown minor revision code: {})",
            version["minor_code"]
        )),
    }
}

fn identify_hdparm(c: &mut Compare, ours: &Value, hdparm: &Value) {
    c.fields(
        ours,
        hdparm,
        &[
            ("/model", "/model"),
            ("/serial", "/serial"),
            ("/firmware", "/firmware"),
            ("/sectors_28bit", "/lba28_sectors"),
            ("/sectors_48bit", "/lba48_sectors"),
            ("/logical_sector_bytes", "/logical_sector_bytes"),
            ("/physical_sector_bytes", "/physical_sector_bytes"),
            ("/trim/supported", "/trim_supported"),
        ],
    );
    let checksum = if hdparm["checksum"] == "correct" {
        "valid"
    } else {
        "invalid"
    };
    c.equal("/checksum", &ours["checksum"], &json!(checksum));
    let rotation = match ours["rotation_rpm"].as_u64() {
        Some(0) => json!("Solid State Device"),
        Some(rpm) => json!(rpm.to_string()),
        None => Value::Null,
    };
    let theirs = match &hdparm["rotation"] {
        Value::Number(n) => json!(n.to_string()),
        other => other.clone(),
    };
    c.equal("/rotation", &rotation, &theirs);
    let form_factor = ours["form_factor"]["name"]
        .as_str()
        .map(|name| name.replace("inches", "inch"));
    c.equal("/form_factor", &json!(form_factor), &hdparm["form_factor"]);
    if let Some(limit) = hdparm["trim_limit"].as_str() {
        c.equal(
            "/trim_limit",
            &ours["trim"]
                .get("max_blocks")
                .map_or(Value::Null, |n| json!(n.as_f64())),
            &first_number(limit),
        );
    }
    let (deterministic, zeroes) = (&ours["trim"]["deterministic"], &ours["trim"]["zeroes"]);
    c.equal(
        "/deterministic_read_zeros_after_trim",
        &json!(*deterministic == json!(true) && *zeroes == json!(true)),
        &hdparm["deterministic_read_zeros_after_trim"],
    );
    c.equal(
        "/deterministic_read_data_after_trim",
        &json!(*deterministic == json!(true) && *zeroes == json!(false)),
        &hdparm["deterministic_read_data_after_trim"],
    );
    if let Some(transport) = hdparm["transport"].as_str() {
        let word = transport.split(',').next().unwrap_or_default();
        c.equal("/transport", &ours["transport"], &json!(word.to_lowercase()));
    }
}

/// hdparm's phrases for features, as pointers into our document or names in our list.
const HDPARM_FEATURES: &[(&str, &str)] = &[
    ("48-bit Address feature set", "lba48"),
    ("64-bit World wide name", "wwn"),
    ("Address Offset Reserved Area Boot", "reserved_area_boot"),
    ("Advanced Power Management feature set", "apm"),
    (
        "Asynchronous notification (eg. media change)",
        "hardware_feature_control",
    ),
    ("Automatic Acoustic Management feature set", "aam"),
    ("BLOCK_ERASE_EXT command", "/sanitize/block_erase"),
    ("CRYPTO_SCRAMBLE_EXT command", "/sanitize/crypto_scramble"),
    ("OVERWRITE_EXT command", "/sanitize/overwrite"),
    ("SANITIZE feature set", "/sanitize/supported"),
    ("DEVICE CONFIGURATION SET/IDENTIFY DMA commands", "dco_dma"),
    ("DMA Setup Auto-Activate optimization", "dma_setup_auto_activate"),
    ("DOWNLOAD MICROCODE DMA command", "download_microcode_dma"),
    ("DOWNLOAD_MICROCODE", "download_microcode"),
    ("Device Configuration Overlay feature set", "dco"),
    ("Device Sleep (DEVSLP)", "devslp"),
    ("Device encrypts all user data", "encrypts_user_data"),
    (
        "Device-initiated interface power management",
        "device_initiated_link_power",
    ),
    (
        "Disable Data Transfer After Error Detection",
        "no_transfer_after_error",
    ),
    ("Extended number of user addressable sectors", "extended_sectors"),
    ("FLUSH_CACHE_EXT", "flush_cache_ext"),
    ("Mandatory FLUSH_CACHE", "flush_cache"),
    ("General Purpose Logging feature set", "gpl"),
    ("Host Protected Area feature set", "hpa"),
    (
        "Host-initiated interface power management",
        "host_initiated_link_power",
    ),
    ("IDLE_IMMEDIATE with UNLOAD", "idle_unload"),
    (
        "IEEE 1667 authentication of transient storage devices",
        "ieee_1667",
    ),
    ("Idle-Unload when NCQ is active", "unload_with_ncq"),
    ("In-order data delivery", "in_order_data"),
    ("Look-ahead", "read_look_ahead"),
    ("Media Card Pass-Through", "streaming"),
    ("NCQ priority information", "ncq_priority"),
    ("NOP cmd", "nop"),
    ("Native Command Queueing (NCQ)", "ncq"),
    (
        "Non-Zero buffer offsets in DMA Setup FIS",
        "non_zero_buffer_offsets",
    ),
    ("Phy event counters", "phy_event_counters"),
    ("Power Management feature set", "power_management"),
    ("Power-Up In Standby feature set", "power_up_in_standby"),
    ("READ BUFFER DMA command", "read_buffer_dma"),
    ("READ_BUFFER command", "read_buffer"),
    (
        "READ_LOG_DMA_EXT equivalent to READ_LOG_EXT",
        "read_log_dma_as_pio",
    ),
    ("SCT Data Tables (AC5)", "/sct/data_tables"),
    ("SCT Error Recovery Control (AC3)", "/sct/error_recovery_control"),
    ("SCT Features Control (AC4)", "/sct/feature_control"),
    ("SCT Read/Write Long (AC1), obsolete", "/sct/long_sector_access"),
    ("SCT Write Same (AC2)", "/sct/write_same"),
    ("SET MAX SETPASSWORD/UNLOCK DMA commands", "set_max_password_dma"),
    (
        "SET_FEATURES required to spinup after power up",
        "spin_up_by_set_features",
    ),
    ("SET_MAX security extension", "set_max_security"),
    ("SMART Command Transport (SCT) feature set", "/sct/supported"),
    ("SMART error logging", "smart_error_log"),
    ("SMART feature set", "smart"),
    ("SMART self-test", "smart_self_test"),
    ("Security Mode feature set", "security"),
    ("Segmented DOWNLOAD_MICROCODE", "segmented_microcode"),
    ("Software settings preservation", "settings_preservation"),
    ("URG for READ_STREAM[_DMA]_EXT", "urg_read_stream"),
    ("URG for WRITE_STREAM[_DMA]_EXT", "urg_write_stream"),
    ("WRITE BUFFER DMA command", "write_buffer_dma"),
    ("WRITE_BUFFER command", "write_buffer"),
    ("WRITE_UNCORRECTABLE_EXT command", "write_uncorrectable_ext"),
    ("WRITE_{DMA|MULTIPLE}_FUA_EXT", "write_fua_ext"),
    ("Write cache", "write_cache"),
    ("Write-Read-Verify feature set", "write_read_verify"),
    ("unknown 119[8]", "amac"),
    ("{READ,WRITE}_DMA_EXT_GPL commands", "log_dma_ext"),
];

fn identify_hdparm_text(c: &mut Compare, ours: &Value, text: &[&str]) {
    let mut listed = Vec::new();
    let features = ours["features"].as_array().cloned().unwrap_or_default();
    let mut security = false;
    for line in text {
        security |= *line == "Security:";
        security &= !line.starts_with("Logical Unit") && !line.starts_with("Checksum");
        if security {
            hdparm_security(c, &ours["security"], line);
            continue;
        }
        if let Some(depth) = line.trim().strip_prefix("Queue depth: ") {
            c.equal(
                "queue depth",
                &json!(ours["queue_depth"].as_f64()),
                &first_number(depth),
            );
        } else if let Some(modes) = line.trim().strip_prefix("DMA: ") {
            hdparm_dma(c, &ours["udma"], modes);
        } else if let Some(offset) = line.trim().strip_prefix("Logical Sector-0 offset:") {
            c.equal(
                "alignment",
                &json!(ours["alignment_offset_bytes"].as_f64()),
                &first_number(offset),
            );
        } else if let Some(level) = line.trim().strip_prefix("Advanced power management level: ") {
            let ours = ours["apm"]
                .get("level")
                .map_or_else(|| json!("disabled"), |n| json!(n.to_string()));
            c.equal("APM level", &ours, &json!(level));
        } else if let Some((mark, phrase)) = line.rsplit_once('\t')
            && matches!(mark, "\t   *" | "\t    ")
        {
            let Some((_, name)) = HDPARM_FEATURES.iter().find(|(known, _)| *known == phrase) else {
                continue;
            };
            let on = mark.ends_with('*');
            if phrase == "Media Card Pass-Through" {
                c.disagreement(
                    "hdparm says Media Card Pass-Through for word 84 bit 4, which is streaming since ATA-7",
                );
            }
            if name.starts_with('/') {
                c.equal(phrase, &at(ours, name), &json!(on));
                continue;
            }
            listed.push(*name);
            let Some(ours) = features.iter().find(|f| f["name"] == *name) else {
                c.wrong(&format!("hdparm lists {phrase}, we do not"));
                continue;
            };
            c.equal(phrase, ours.get("enabled").unwrap_or(&json!(true)), &json!(on));
        }
    }
    if text.is_empty() {
        return;
    }
    for feature in features.iter().filter_map(|f| f["name"].as_str()) {
        if HDPARM_FEATURES.iter().any(|(_, name)| *name == feature) {
            c.equal(
                "listed by both",
                &json!(feature),
                &json!(listed.iter().find(|l| **l == feature)),
            );
        }
    }
}

fn hdparm_security(c: &mut Compare, ours: &Value, line: &str) {
    let line = line.trim();
    if let Some(code) = line.strip_prefix("Master password revision code = ") {
        c.equal(
            "master password revision",
            &json!(ours["master_password_revision"].as_f64()),
            &first_number(code),
        );
    } else if line.contains("for SECURITY ERASE UNIT") {
        let mut times = line.split("min for");
        let normal = times.next().unwrap_or_default();
        c.equal(
            "erase minutes",
            &json!(ours["erase"]["minutes"].as_f64()),
            &first_number(normal),
        );
        if line.contains("ENHANCED") {
            let enhanced = times
                .next()
                .unwrap_or_default()
                .rsplit(' ')
                .next()
                .unwrap_or_default();
            c.equal(
                "enhanced erase minutes",
                &json!(ours["enhanced"]["minutes"].as_f64()),
                &first_number(enhanced),
            );
        }
    } else {
        let (said, word) = line
            .strip_prefix("not\t")
            .map_or((true, line), |word| (false, word));
        let key = match word.trim() {
            "supported" => "supported",
            "enabled" => "enabled",
            "locked" => "locked",
            "frozen" => "frozen",
            "expired: security count" => "count_expired",
            "supported: enhanced erase" => "enhanced_erase",
            _ => return,
        };
        c.equal(key, &ours[key], &json!(said));
    }
}

fn hdparm_dma(c: &mut Compare, ours: &Value, modes: &str) {
    let number = |word: &str| {
        word.trim_start_matches('*')
            .strip_prefix("udma")
            .and_then(|n| n.parse::<u8>().ok())
    };
    let max = modes.split_whitespace().filter_map(number).max();
    let active = modes
        .split_whitespace()
        .find(|w| w.starts_with('*'))
        .and_then(number);
    c.equal("highest Ultra DMA mode", &at(ours, "/max"), &json!(max));
    c.equal("selected Ultra DMA mode", &at(ours, "/active"), &json!(active));
}

// SMART

fn smart_data(root: &Path, case: &Case, tally: &mut Tally) {
    let mut c = Compare {
        kind: "smart-data",
        case: &case.name,
        tally,
    };
    let data = match SmartData::parse(&case.bytes) {
        Ok(data) => data,
        Err(error) => return c.wrong(&error.to_string()),
    };
    let smartctl = &case.expect["smartctl_7.3_replay"];
    let identify = std::fs::read(root.join("identify").join(&case.name))
        .ok()
        .and_then(|bytes| Identify::parse(&bytes).ok());
    let thresholds = std::fs::read(root.join("smart-thresholds").join(&case.name))
        .ok()
        .and_then(|bytes| Thresholds::parse(&bytes).ok());
    let table = match &identify {
        Some(identify) => AttributeTable::for_drive(Some(identify)),
        // The source says that the tool was given the identity of another Micron drive.
        None if case.name.starts_with("micron") => {
            AttributeTable::for_model("Micron_M600_MTFDDAK256MBF", "", Rotation::NonRotating)
        }
        None => AttributeTable::for_drive(None),
    };
    let report = SmartReport::build_with(&data, thresholds.as_ref(), &table);
    let ours = serde_json::to_value(&report).unwrap();

    let warned = lines(&case.expect, "/smartctl_text")
        .iter()
        .any(|line| line.contains("SMART Attribute Data Structure") && line.contains("checksum"));
    let checksum = if warned || case.name.contains("badchecksum") {
        "invalid"
    } else {
        "valid"
    };
    c.equal("checksum", &ours["checksum"], &json!(checksum));
    c.equal(
        "revision",
        &ours["revision"],
        &smartctl["ata_smart_attributes"]["revision"],
    );
    attributes(
        &mut c,
        &ours,
        &smartctl["ata_smart_attributes"]["table"],
        true,
        true,
    );
    times_and_temperature(&mut c, &ours, smartctl);
    let failing = report
        .failing()
        .iter()
        .any(|a| a.prefailure && serde_json::to_value(a.when_failed).unwrap() == json!("now"));
    c.equal(
        "/smart_status/passed",
        &json!(!failing),
        &smartctl["smart_status"]["passed"],
    );
    if let Some(status) = smartctl.get("ata_smart_data") {
        smart_status_bytes(&mut c, &ours, status);
    }
    skdump(&mut c, &ours, &case.expect);
    if let Some(cdi) = case.expect.get("crystaldiskinfo_printed_in_source") {
        crystaldiskinfo(&mut c, &ours, cdi);
    }
}

/// The attribute table of smartctl's JSON. Names are compared only where the tool's version is known to be ours.
fn attributes(c: &mut Compare, ours: &Value, table: &Value, names: bool, in_database: bool) {
    let ours = ours["attributes"].as_array().cloned().unwrap_or_default();
    let theirs = table.as_array().cloned().unwrap_or_default();
    c.equal("number of attributes", &json!(ours.len()), &json!(theirs.len()));
    for (ours, theirs) in ours.iter().zip(&theirs) {
        let id = &theirs["id"];
        let thresh = theirs.get("thresh").cloned().unwrap_or(Value::Null);
        let failed = match theirs["when_failed"].as_str() {
            None | Some("") => Value::Null,
            Some(word) => json!(word),
        };
        let raw = theirs["raw"]["value"].as_u64().unwrap_or_default();
        for (what, ours, theirs) in [
            ("id", at(ours, "/id"), id.clone()),
            ("value", at(ours, "/value"), theirs["value"].clone()),
            ("worst", at(ours, "/worst"), theirs["worst"].clone()),
            ("threshold", at(ours, "/threshold"), thresh),
            ("when_failed", at(ours, "/when_failed"), failed),
            ("raw", at(ours, "/raw"), json!(raw)),
            ("raw hex", at(ours, "/raw_hex"), json!(format!("{raw:012x}"))),
            ("raw text", at(ours, "/raw_text"), theirs["raw"]["string"].clone()),
            (
                "flags",
                at(ours, "/flags/value"),
                theirs["flags"]["value"].clone(),
            ),
            (
                "prefailure",
                at(ours, "/prefailure"),
                theirs["flags"]["prefailure"].clone(),
            ),
            (
                "online",
                at(ours, "/flags/updated_online"),
                theirs["flags"]["updated_online"].clone(),
            ),
            (
                "performance",
                at(ours, "/flags/performance"),
                theirs["flags"]["performance"].clone(),
            ),
            (
                "error rate",
                at(ours, "/flags/error_rate"),
                theirs["flags"]["error_rate"].clone(),
            ),
            (
                "event count",
                at(ours, "/flags/event_count"),
                theirs["flags"]["event_count"].clone(),
            ),
            (
                "keeping",
                at(ours, "/flags/self_preserving"),
                theirs["flags"]["auto_keep"].clone(),
            ),
        ] {
            if what == "raw text" && !in_database && ours != theirs {
                c.disagreement(&format!(
                    "attribute {id} is printed as {theirs} by a smartctl that does not know the drive, {ours} here by family"
                ));
                continue;
            }
            c.equal(&format!("attribute {id} {what}"), &ours, &theirs);
        }
        name(c, id, &ours["name"], &theirs["name"], names);
    }
}

/// Names follow smartctl 7.3; other versions of its database use other words, which is listed but no error.
fn name(c: &mut Compare, id: &Value, ours: &Value, theirs: &Value, same_version: bool) {
    if same_version || ours == theirs {
        c.equal(&format!("attribute {id} name"), ours, theirs);
    } else {
        c.disagreement(&format!(
            "attribute {id} is {theirs} in the database of that smartctl, {ours} here by smartctl 7.3's or our family row"
        ));
    }
}

fn times_and_temperature(c: &mut Compare, ours: &Value, smartctl: &Value) {
    c.fields(
        ours,
        smartctl,
        &[
            ("/temperature/celsius", "/temperature/current"),
            ("/power_on_hours", "/power_on_time/hours"),
            ("/power_on_minutes", "/power_on_time/minutes"),
            ("/power_cycles", "/power_cycle_count"),
        ],
    );
}

fn smart_status_bytes(c: &mut Compare, ours: &Value, theirs: &Value) {
    let offline = &theirs["offline_data_collection"];
    c.equal(
        "offline code",
        &at(ours, "/offline/code"),
        &offline["status"]["value"],
    );
    c.equal(
        "offline seconds",
        &at(ours, "/offline/completion_seconds"),
        &offline["completion_seconds"],
    );
    let word = match offline["status"]["string"].as_str().unwrap_or_default() {
        "was never started" => "never_started",
        "was completed without error" => "completed",
        "was suspended by an interrupting command from host" => "suspended_by_host",
        "was aborted by an interrupting command from host" => "aborted_by_host",
        "is in a Vendor Specific state" => "vendor_specific",
        other => other,
    };
    c.equal("offline words", &at(ours, "/offline/status"), &json!(word));
    c.fields(
        ours,
        theirs,
        &[
            ("/self_test/code", "/self_test/status/value"),
            ("/self_test/passed", "/self_test/status/passed"),
            (
                "/self_test/remaining_percent",
                "/self_test/status/remaining_percent",
            ),
            ("/self_test/short_minutes", "/self_test/polling_minutes/short"),
            (
                "/self_test/extended_minutes",
                "/self_test/polling_minutes/extended",
            ),
            (
                "/self_test/conveyance_minutes",
                "/self_test/polling_minutes/conveyance",
            ),
            ("/capabilities/offline_bits", "/capabilities/values/0"),
            (
                "/capabilities/autosave",
                "/capabilities/attribute_autosave_enabled",
            ),
            (
                "/capabilities/error_logging",
                "/capabilities/error_logging_supported",
            ),
        ],
    );
    // smartctl leaves the rest out on drives without off-line collection.
    if theirs["capabilities"]
        .get("exec_offline_immediate_supported")
        .is_some()
    {
        c.fields(
            ours,
            theirs,
            &[
                (
                    "/capabilities/execute_offline",
                    "/capabilities/exec_offline_immediate_supported",
                ),
                (
                    "/capabilities/abort_on_command",
                    "/capabilities/offline_is_aborted_upon_new_cmd",
                ),
                (
                    "/capabilities/surface_scan",
                    "/capabilities/offline_surface_scan_supported",
                ),
                ("/capabilities/self_test", "/capabilities/self_tests_supported"),
                (
                    "/capabilities/conveyance_test",
                    "/capabilities/conveyance_self_test_supported",
                ),
                (
                    "/capabilities/selective_test",
                    "/capabilities/selective_self_test_supported",
                ),
            ],
        );
    }
}

fn skdump(c: &mut Compare, ours: &Value, expect: &Value) {
    let Some(text) = expect["skdump_temperature"].as_str() else {
        return;
    };
    if let Some(reason) = expect["oracles_disagree"].as_str() {
        c.disagreement(&format!("{reason}; we follow the raw value, as smartctl does"));
        return;
    }
    let theirs = text.strip_suffix(" C").map_or(Value::Null, first_number);
    let celsius = ours["temperature"]["celsius"].as_f64();
    c.equal("skdump temperature", &json!(celsius), &theirs);
}

fn crystaldiskinfo(c: &mut Compare, ours: &Value, cdi: &Value) {
    let celsius = ours["temperature"]["celsius"].as_f64();
    for (key, ours) in [
        ("Temperature", json!(celsius)),
        ("Power On Hours", json!(ours["power_on_hours"].as_f64())),
        ("Power On Count", json!(ours["power_cycles"].as_f64())),
    ] {
        if let Some(text) = cdi[key].as_str() {
            c.equal(key, &ours, &first_number(text));
        }
    }
    if let Some(health) = cdi["Health Status"].as_str().filter(|text| text.contains('%')) {
        c.equal(
            "life left",
            &json!(ours["life_left_percent"].as_f64()),
            &first_number(health),
        );
    }
    for theirs in cdi["attributes"].as_array().cloned().unwrap_or_default() {
        let attributes = ours["attributes"].as_array().cloned().unwrap_or_default();
        let Some(ours) = attributes.iter().find(|a| a["id"] == theirs["id"]) else {
            c.wrong(&format!(
                "CrystalDiskInfo lists attribute {}, we do not",
                theirs["id"]
            ));
            continue;
        };
        c.fields(
            ours,
            &theirs,
            &[
                ("/value", "/value"),
                ("/worst", "/worst"),
                ("/raw_hex", "/raw48_hex"),
            ],
        );
        if let Some(threshold) = ours.get("threshold") {
            c.equal("thresh", threshold, &theirs["thresh"]);
        }
    }
}

fn smart_thresholds(case: &Case, tally: &mut Tally) {
    let mut c = Compare {
        kind: "smart-thresholds",
        case: &case.name,
        tally,
    };
    let theirs = case.expect["thresholds"].as_array().cloned().unwrap_or_default();
    let thresholds = match Thresholds::parse(&case.bytes) {
        Ok(thresholds) => thresholds,
        Err(error) => return c.wrong(&error.to_string()),
    };
    for entry in theirs {
        let id = entry["id"]
            .as_u64()
            .and_then(|id| u8::try_from(id).ok())
            .unwrap_or(0);
        c.equal(
            &format!("threshold of {id}"),
            &json!(thresholds.of(id)),
            &entry["thresh"],
        );
    }
    let checksum = serde_json::to_value(thresholds.checksum()).unwrap();
    c.equal("checksum", &checksum, &json!("valid"));
}

// SCT and device statistics

fn sct_status(case: &Case, tally: &mut Tally) {
    let mut c = Compare {
        kind: "sct-status",
        case: &case.name,
        tally,
    };
    let ours = match SctStatus::parse(&case.bytes) {
        Ok(status) => serde_json::to_value(status).unwrap(),
        Err(error) => return c.wrong(&error.to_string()),
    };
    let smartctl = &case.expect["smartctl_7.3"];
    c.fields(
        &ours,
        smartctl,
        &[
            ("/format_version", "/format_version"),
            ("/sct_version", "/sct_version"),
            ("/state/code", "/device_state/value"),
            ("/temperature/celsius", "/temperature/current"),
            ("/temperature/power_cycle_min", "/temperature/power_cycle_min"),
            ("/temperature/power_cycle_max", "/temperature/power_cycle_max"),
            ("/temperature/lifetime_min", "/temperature/lifetime_min"),
            ("/temperature/lifetime_max", "/temperature/lifetime_max"),
            ("/temperature/op_limit_max", "/temperature/op_limit_max"),
            ("/temperature/under_limit_count", "/temperature/under_limit_count"),
            ("/temperature/over_limit_count", "/temperature/over_limit_count"),
        ],
    );
    if let Some(bytes) = smartctl["vendor_specific"].as_array() {
        let theirs: Vec<String> = bytes
            .iter()
            .map(|b| format!("{:02x}", b.as_u64().unwrap_or_default()))
            .collect();
        c.equal(
            "vendor bytes",
            &at(&ours, "/vendor_hex"),
            &json!(theirs.join(" ")),
        );
    }
    if smartctl["temperature"]["current"] == json!(0) {
        c.equal("plausible", &ours["temperature"]["plausible"], &json!(false));
    }
}

fn sct_temp_history(case: &Case, tally: &mut Tally) {
    let mut c = Compare {
        kind: "sct-temp-history",
        case: &case.name,
        tally,
    };
    let ours = match TempHistory::parse(&case.bytes) {
        Ok(history) => serde_json::to_value(history).unwrap(),
        Err(error) => return c.wrong(&error.to_string()),
    };
    c.fields(
        &ours,
        &case.expect["smartctl_7.3"],
        &[
            ("/format_version", "/version"),
            ("/sampling_minutes", "/sampling_period_minutes"),
            ("/interval_minutes", "/logging_interval_minutes"),
            ("/op_limit_min", "/temperature/op_limit_min"),
            ("/op_limit_max", "/temperature/op_limit_max"),
            ("/limit_min", "/temperature/limit_min"),
            ("/limit_max", "/temperature/limit_max"),
            ("/size", "/size"),
            ("/index", "/index"),
            ("/samples", "/table"),
        ],
    );
}

fn devstat(case: &Case, tally: &mut Tally) {
    let mut c = Compare {
        kind: "devstat",
        case: &case.name,
        tally,
    };
    let ours = match DeviceStatistics::parse(&case.bytes) {
        Ok(log) => serde_json::to_value(log).unwrap(),
        Err(error) => return c.wrong(&error.to_string()),
    };
    let theirs = case.expect["smartctl_7.3"]["pages"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let pages = ours["pages"].as_array().cloned().unwrap_or_default();
    c.equal("number of pages", &json!(pages.len()), &json!(theirs.len()));
    for (page, their_page) in pages.iter().zip(&theirs) {
        c.fields(
            page,
            their_page,
            &[
                ("/number", "/number"),
                ("/name", "/name"),
                ("/revision", "/revision"),
            ],
        );
        let rows = page["table"].as_array().cloned().unwrap_or_default();
        let their_rows = their_page["table"].as_array().cloned().unwrap_or_default();
        c.equal("number of rows", &json!(rows.len()), &json!(their_rows.len()));
        for (row, their_row) in rows.iter().zip(&their_rows) {
            c.fields(
                row,
                their_row,
                &[
                    ("/offset_bytes", "/offset"),
                    ("/name", "/name"),
                    ("/size_bytes", "/size"),
                    ("/value", "/value"),
                    ("/flags/value", "/flags/value"),
                    ("/flags/valid", "/flags/valid"),
                    ("/flags/normalized", "/flags/normalized"),
                    ("/flags/supports_dsn", "/flags/supports_dsn"),
                    ("/flags/monitored_condition_met", "/flags/monitored_condition_met"),
                ],
            );
        }
    }
}

// Reports of smartctl

/// Puts the attributes of a report back into a sector. The byte behind each raw value is not in the report.
fn sector_of(table: &[Value]) -> Vec<u8> {
    let mut bytes = vec![0; 512];
    bytes[0] = 16;
    for (slot, attribute) in table.iter().take(30).enumerate() {
        let number = |key: &str| attribute[key].as_u64().unwrap_or_default();
        let start = 2 + slot * 12;
        bytes[start] = number("id") as u8;
        let flags = attribute["flags"]["value"].as_u64().unwrap_or_default();
        bytes[start + 1..start + 3].copy_from_slice(&flags.to_le_bytes()[..2]);
        bytes[start + 3] = number("value") as u8;
        bytes[start + 4] = number("worst") as u8;
        let raw = attribute["raw"]["value"].as_u64().unwrap_or_default();
        bytes[start + 5..start + 11].copy_from_slice(&raw.to_le_bytes()[..6]);
    }
    bytes
}

fn thresholds_of(table: &[Value]) -> Vec<u8> {
    let mut bytes = vec![0; 512];
    bytes[0] = 16;
    for (slot, attribute) in table.iter().take(30).enumerate() {
        bytes[2 + slot * 12] = attribute["id"].as_u64().unwrap_or_default() as u8;
        bytes[3 + slot * 12] = attribute["thresh"].as_u64().unwrap_or_default() as u8;
    }
    let sum: u32 = bytes.iter().map(|&b| u32::from(b)).sum();
    bytes[511] = (256 - sum % 256) as u8;
    bytes
}

/// Reports on ATA drives carry whole raw values; the others are not ours to decode.
fn smartctl_json(case: &Case, tally: &mut Tally) {
    let Ok(report) = serde_json::from_slice::<Value>(&case.bytes) else {
        return;
    };
    let Some(table) = report["ata_smart_attributes"]["table"].as_array() else {
        return;
    };
    let mut c = Compare {
        kind: "smartctl-json",
        case: &case.name,
        tally,
    };
    let rotation = match report["rotation_rate"].as_u64() {
        Some(0) => Rotation::NonRotating,
        Some(rpm) => Rotation::Rpm(u16::try_from(rpm).unwrap_or(u16::MAX)),
        None => Rotation::Unknown,
    };
    let drive = AttributeTable::for_model(
        report["model_name"].as_str().unwrap_or_default(),
        report["firmware_version"].as_str().unwrap_or_default(),
        rotation,
    );
    let data = SmartData::parse(&sector_of(table)).unwrap();
    let thresholds = Thresholds::parse(&thresholds_of(table)).unwrap();
    let ours = serde_json::to_value(SmartReport::build_with(&data, Some(&thresholds), &drive)).unwrap();
    let in_database = report["in_smartctl_database"] == json!(true);
    attributes(
        &mut c,
        &ours,
        &report["ata_smart_attributes"]["table"],
        false,
        in_database,
    );
    times_and_temperature(&mut c, &ours, &report);
}

/// Printed tables have no raw bytes, only names to compare. The SCT and device statistics lines of the same reports
/// are the `assembled-` cases of those kinds.
fn smartctl_text(case: &Case, tally: &mut Tally) {
    let mut c = Compare {
        kind: "smartctl-text",
        case: &case.name,
        tally,
    };
    let head = lines(&case.expect, "/lines");
    let field = |name: &str| {
        head.iter()
            .find_map(|line| line.strip_prefix(name))
            .unwrap_or_default()
            .trim()
    };
    let model = field("Device Model:");
    if model.is_empty() {
        return;
    }
    let rotation = match field("Rotation Rate:") {
        "Solid State Device" => Rotation::NonRotating,
        "" => Rotation::Unknown,
        text => Rotation::Rpm(first_number(text).as_f64().unwrap_or_default() as u16),
    };
    let drive = AttributeTable::for_model(model, field("Firmware Version:"), rotation);
    for attribute in case.expect["attributes"].as_array().cloned().unwrap_or_default() {
        let Some(id) = attribute["id"].as_u64().and_then(|id| u8::try_from(id).ok()) else {
            continue;
        };
        name(
            &mut c,
            &attribute["id"],
            &json!(drive.definition(id).name),
            &attribute["name"],
            false,
        );
    }
}
