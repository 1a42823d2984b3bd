//! IDENTIFY DEVICE data.

use drivethru::ata::identify::Identify;
use drivethru::cli::decode::read_input;
use serde_json::{Value, json};

use super::{Compare, at, first_number};
use crate::{Case, Tally, lines};

pub(super) fn identify(kind: &'static str, case: &Case, tally: &mut Tally) {
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
    ("All write cache is non-volatile", "non_volatile_cache"),
    ("CFA feature set", "cfa"),
    ("DEVICE_RESET command", "device_reset"),
    (
        "Device automatic Partial to Slumber transitions",
        "device_auto_slumber",
    ),
    (
        "Host automatic Partial to Slumber transitions",
        "host_auto_slumber",
    ),
    ("Free-fall Control feature set", "free_fall"),
    ("Long physical sector diagnostics", "long_sector_alignment"),
    (
        "Media Card Pass Through Command feature set",
        "media_card_pass_through",
    ),
    ("Media serial number", "media_serial"),
    ("Optional ATA device 28-bit commands", "optional_28bit"),
    ("PACKET command feature set", "packet"),
    ("READ/WRITE_DMA_QUEUED", "tagged_queuing"),
    ("Release interrupt", "release_interrupt"),
    (
        "Removable Media Status Notification feature set",
        "removable_media_status",
    ),
    ("Removable Media feature set", "removable_media"),
    ("SERVICE interrupt", "service_interrupt"),
    ("WRITE_DMA_QUEUED_FUA_EXT", "write_queued_fua_ext"),
    ("unknown 119[6]", "sense_data_reporting"),
    ("unknown 119[7]", "epc"),
    ("unknown 119[9]", "dsn"),
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
