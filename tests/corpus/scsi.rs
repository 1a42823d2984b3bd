//! Sense data, INQUIRY and VPD pages against sg3_utils.

use std::path::Path;

use drivethru::cli::decode::{Kind, decode, read_input};
use serde_json::{Value, json};

use crate::{Case, Tally, cases, lines};

/// Compares every SCSI case.
pub fn run(root: &Path, tally: &mut Tally) {
    for (name, kind) in [
        ("sense", Kind::Sense),
        ("inquiry", Kind::Inquiry),
        ("vpd", Kind::Vpd),
    ] {
        for case in cases(root, name, tally) {
            let decoded = read_input(&case.bytes).and_then(|b| {
                let guessed = decode(Kind::Auto, &b, None, None)?;
                Ok((decode(kind, &b, None, None)?, guessed))
            });
            let (document, guessed) = match decoded {
                Ok(decoded) => decoded,
                Err(error) => {
                    tally.wrong(name, &case.name, &error.to_string());
                    continue;
                }
            };
            tally.equal(
                name,
                &case.name,
                "kind guessed",
                &guessed["kind"],
                &json!(kind.name()),
            );
            match kind {
                Kind::Sense => sense(
                    tally,
                    &case.name,
                    &lines(&case.expect, "/sg_decode_sense/text"),
                    &document,
                ),
                Kind::Inquiry => inquiry(tally, &case, &document),
                _ => vpd(tally, &case, &document),
            }
        }
    }
}

/// `0x1f` or `31`, up to the first character that belongs to neither.
fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(hex) => (hex, 16),
        None => (text, 10),
    };
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    u64::from_str_radix(digits.get(..end)?, radix).ok()
}

/// The text behind `marker` in a line.
fn behind<'a>(line: &'a str, marker: &str) -> Option<&'a str> {
    line.split_once(marker).map(|(_, rest)| rest.trim())
}

fn sense(tally: &mut Tally, case: &str, text: &[&str], document: &Value) {
    let mut forwarded: Option<Vec<&str>> = None;
    let mut nested = 0;
    for line in text {
        if line.trim_start().starts_with("vvvv") {
            forwarded = Some(Vec::new());
            continue;
        }
        if line.trim_start().starts_with("^^^^") {
            let inner = document
                .pointer(&format!("/forwarded/{nested}"))
                .cloned()
                .unwrap_or_default();
            sense(tally, case, &forwarded.take().unwrap_or_default(), &inner);
            nested += 1;
            continue;
        }
        match forwarded.as_mut() {
            Some(inner) => inner.push(line),
            None => sense_line(tally, case, line, document),
        }
    }
}

fn sense_line(tally: &mut Tally, case: &str, line: &str, document: &Value) {
    const KIND: &str = "sense";
    let at = |pointer: &str| document.pointer(pointer).cloned().unwrap_or_default();
    let mut same = |what: &str, ours: Value, theirs: Value| tally.equal(KIND, case, what, &ours, &theirs);
    if let Some((format, rest)) = line.split_once(" format, ")
        && let Some(key) = behind(rest, "Sense key: ")
    {
        same("format", at("/format"), json!(format));
        same("deferred", at("/deferred"), json!(rest.contains("deferred")));
        // "Vendor specific(9)" and "Equal" are sg3_utils' own names.
        match key.to_ascii_lowercase().as_str() {
            "equal" => same("key", at("/key"), json!(12)),
            key => {
                let key = key.split('(').next().unwrap_or(key);
                same("key", at("/key_name"), json!(key));
            }
        }
    } else if let Some(theirs) = behind(line, "Additional sense: ") {
        // Codes with a number in them are written in different ways.
        if !theirs.contains('[') && !theirs.contains("0x") {
            same("code", at("/code_text"), json!(theirs));
        }
    } else if let Some(theirs) = behind(line, "Info fld=").and_then(number) {
        same("information", at("/information"), json!(theirs));
    } else if let Some(theirs) = behind(line, "Descriptor type: Information:").and_then(number) {
        same("information", at("/information"), json!(theirs));
    } else if let Some(theirs) = behind(line, "Descriptor type: Command specific:").and_then(number) {
        same("command specific", at("/command_specific"), json!(theirs));
    } else if let Some(theirs) = behind(line, "Field replaceable unit code:").and_then(number) {
        same("fru", at("/field_replaceable_unit"), json!(theirs));
    } else if let Some(theirs) = behind(line, "Error in Command: byte").and_then(number) {
        same("in cdb", at("/sense_key_specific/in_cdb"), json!(true));
        same("byte", at("/sense_key_specific/byte"), json!(theirs));
        bit(&mut same, line, document);
    } else if let Some(theirs) = behind(line, "Error in Data parameters: byte").and_then(number) {
        same("in cdb", at("/sense_key_specific/in_cdb"), json!(false));
        same("byte", at("/sense_key_specific/byte"), json!(theirs));
        bit(&mut same, line, document);
    } else if let Some(theirs) = behind(line, "Actual retry count:").and_then(number) {
        same("retries", at("/sense_key_specific/count"), json!(theirs));
    } else if let Some(theirs) = behind(line, "Another progress indication:") {
        // sg_decode_sense 1.21 writes a literal "02" between point and hundredths here: 19.53 % as 19.0253%.
        match theirs.split_once(".02") {
            Some((whole, hundredths)) if hundredths.trim_end_matches('%').len() == 2 => {
                percent(
                    &mut same,
                    at("/another_progress/0/progress_65536"),
                    &format!("{whole}.{hundredths}"),
                );
                tally.disagreement(
                    KIND,
                    case,
                    &format!("other progress: {theirs} is not what the bytes say; we give 65536ths, which agree but for the \"02\""),
                );
            }
            _ => percent(&mut same, at("/another_progress/0/progress_65536"), theirs),
        }
    } else if let Some(theirs) = behind(line, "Progress indication:") {
        percent(&mut same, at("/sense_key_specific/progress_65536"), theirs);
    } else if let Some(theirs) = behind(line, "[sense_key=") {
        same("other key", at("/another_progress/0/key"), json!(number(theirs)));
        if let Some((asc, ascq)) = behind(theirs, "ascq=").and_then(|v| v.split_once(',')) {
            same("other asc", at("/another_progress/0/asc"), json!(number(asc)));
            same("other ascq", at("/another_progress/0/ascq"), json!(number(ascq)));
        }
    } else if line.contains("(ILI) set") {
        same("ili", at("/ili"), json!(true));
    } else if line.contains("(SDAT_OVFL)") {
        same("overflow", at("/overflow"), json!(true));
    } else if line.trim() == "FMK" || line.trim().starts_with("FMK ") || line.trim() == "EOM" {
        same("filemark", at("/filemark"), json!(line.contains("FMK")));
        same("eom", at("/eom"), json!(line.contains("EOM")));
    } else if let Some(theirs) = behind(line, "overflow flag is").and_then(number) {
        same("lost", at("/sense_key_specific/overflow"), json!(theirs == 1));
    } else if let Some(theirs) = behind(line, "first uds LBA:").and_then(number) {
        same("first lba", at("/referrals/0/first_lba"), json!(theirs));
    } else if let Some(theirs) = behind(line, "last uds LBA:").and_then(number) {
        same("last lba", at("/referrals/0/last_lba"), json!(theirs));
    } else if let Some(theirs) = behind(line, "tpg:").and_then(number) {
        same("port group", at("/referrals/0/port_groups/0/0"), json!(theirs));
    } else {
        registers(&mut same, line, document);
    }
}

fn bit(same: &mut impl FnMut(&str, Value, Value), line: &str, document: &Value) {
    let theirs = behind(line, " bit ").and_then(number);
    let ours = document
        .pointer("/sense_key_specific/bit")
        .cloned()
        .unwrap_or_default();
    same("bit", ours, json!(theirs));
}

fn percent(same: &mut impl FnMut(&str, Value, Value), ours: Value, theirs: &str) {
    let theirs = theirs.trim_end_matches('%');
    let digits = theirs.split_once('.').map_or(0, |(_, d)| d.len());
    let ours = ours.as_u64().unwrap_or_default() as f64 * 100.0 / 65536.0;
    same("progress", json!(format!("{ours:.digits$}")), json!(theirs));
}

/// `extend=0 error=0x0`, `count=0x0 lba=0xc24f00 device=0xe0 status=0x50`, and the fixed format's
/// `count(7:0)=0x3c`, `lba_high,mid,low(7:0)=0x0,0x0,0x0`.
fn registers(same: &mut impl FnMut(&str, Value, Value), line: &str, document: &Value) {
    let ours = |name: &str| document.pointer(&format!("/ata/{name}")).cloned();
    let extended = ours("extend") == Some(json!(true));
    if let Some(theirs) = behind(line, "lba_high,mid,low(7:0)=") {
        for (name, value) in ["lba_high", "lba_mid", "lba_low"].iter().zip(theirs.split(',')) {
            if let Some(ours) = ours(name) {
                same(name, ours, json!(number(value)));
            }
        }
    }
    for word in line.split([' ', ',']) {
        let Some((name, value)) = word.split_once('=') else {
            continue;
        };
        let value = number(value);
        let found = match name {
            "extend" => ours("extend").map(|e| json!(u8::from(e == json!(true)))),
            "error" | "device" | "status" => ours(name),
            "count(7:0)" => ours("count"),
            "count" if !extended => ours("count"),
            "lba" => ours(if extended { "lba48" } else { "lba24" }),
            _ => None,
        };
        if let Some(found) = found {
            same(name, found, json!(value));
        }
    }
}

fn inquiry(tally: &mut Tally, case: &Case, document: &Value) {
    const KIND: &str = "inquiry";
    let at = |key: &str| document.get(key).cloned();
    let mut same =
        |what: &str, ours: Value, theirs: Value| tally.equal(KIND, &case.name, what, &ours, &theirs);
    let mut descriptors = None;
    for line in lines(&case.expect, "/sg_inq/text") {
        for (name, key) in [
            ("Vendor identification:", "vendor"),
            ("Product identification:", "product"),
            ("Product revision level:", "revision"),
        ] {
            if let Some(theirs) = behind(line, name) {
                let theirs = if theirs.is_empty() {
                    Value::Null
                } else {
                    json!(theirs)
                };
                same(name, at(key).unwrap_or_default(), theirs);
            }
        }
        if let Some(theirs) = behind(line, "Peripheral device type:") {
            same(
                "device type",
                at("peripheral_device_type_name").unwrap_or_default(),
                json!(theirs),
            );
        }
        if line.contains("version=0x")
            && let Some(name) = behind(line, "[").and_then(|n| n.strip_suffix(']'))
        {
            same(
                "version name",
                at("version_name").unwrap_or_default(),
                json!(name),
            );
        }
        if line.contains("Version descriptors:") {
            descriptors = Some(0);
            continue;
        }
        if let Some(index) = descriptors.as_mut().filter(|_| line.starts_with("    ")) {
            let ours = document.pointer(&format!("/version_descriptors/{index}/name"));
            if let Some(ours) = ours.and_then(Value::as_str) {
                // They also say which revision of the standard; we say which standard.
                let theirs = line.trim();
                let theirs = theirs.get(..ours.len()).unwrap_or(theirs);
                same("version descriptor", json!(ours), json!(theirs));
            }
            *index += 1;
            continue;
        }
        for word in line.split([' ', '[', ']', '(', ')']) {
            let Some((name, value)) = word.split_once('=') else {
                continue;
            };
            let key = match name {
                "PQual" => "peripheral_qualifier".to_owned(),
                "PDT" => "peripheral_device_type".to_owned(),
                "Resp_data_format" => "response_data_format".to_owned(),
                "3PC" => "third_party_copy".to_owned(),
                "length" => "claimed_bytes".to_owned(),
                "Clocking" => "spi_clocking".to_owned(),
                "QAS" => "spi_qas".to_owned(),
                "IUS" => "spi_ius".to_owned(),
                other => other.to_ascii_lowercase(),
            };
            let ours = match at(&key) {
                Some(Value::Bool(flag)) => json!(u8::from(flag)),
                Some(value) => value,
                None => continue,
            };
            same(name, ours, json!(number(value)));
        }
    }
}

fn vpd(tally: &mut Tally, case: &Case, document: &Value) {
    const KIND: &str = "vpd";
    let text = lines(&case.expect, "/sg_vpd/text");
    if let Some(first) = text.first() {
        let theirs = first.split(" VPD page").next().unwrap_or(first);
        tally.equal(
            KIND,
            &case.name,
            "page name",
            &document["page_name"],
            &json!(theirs),
        );
    }
    let at = |pointer: &str| document.pointer(pointer).cloned();
    match document["page_code"].as_u64() {
        Some(0x83) => designators(tally, case, &text, document),
        Some(0xb8) => format_presets(tally, case, &text, document),
        _ => {}
    }
    for line in &text {
        let Some((name, value)) = line.split_once(": ").or(line.trim().split_once('=')) else {
            if line.contains("Non-rotating medium") {
                let ours = at("/block_device_characteristics/rotating").unwrap_or_default();
                tally.equal(KIND, &case.name, "rotating", &ours, &json!(false));
            }
            if line.contains("signature indicates SATA") {
                tally.equal(
                    KIND,
                    &case.name,
                    "signature",
                    &at("/ata_information/signature_transport").unwrap_or_default(),
                    &json!("sata"),
                );
            }
            continue;
        };
        let (name, value) = (name.trim(), value.trim());
        let pointer = match name {
            "Unit serial number" => "/unit_serial_number",
            "SAT Vendor identification" => "/ata_information/sat_vendor",
            "SAT Product identification" => "/ata_information/sat_product",
            "SAT Product revision level" => "/ata_information/sat_revision",
            "model" => "/ata_information/model",
            "serial number" => "/ata_information/serial",
            "firmware revision" => "/ata_information/firmware",
            "Nominal form factor" => "/block_device_characteristics/form_factor_name",
            _ => "",
        };
        if let (false, Some(ours)) = (pointer.is_empty(), at(pointer)) {
            tally.equal(KIND, &case.name, name, &ours, &json!(value));
            continue;
        }
        let pointer = match name {
            "Command code" => "/ata_information/command_code",
            "Write same non-zero (WSNZ)" => "/block_limits/write_same_nonzero",
            "Maximum compare and write length" => "/block_limits/max_compare_and_write_blocks",
            "Optimal transfer length granularity" => "/block_limits/optimal_transfer_granularity_blocks",
            "Maximum transfer length" => "/block_limits/max_transfer_blocks",
            "Optimal transfer length" => "/block_limits/optimal_transfer_blocks",
            "Maximum prefetch transfer length" | "Maximum prefetch length" => {
                "/block_limits/max_prefetch_blocks"
            }
            "Maximum unmap LBA count" => "/block_limits/max_unmap_blocks",
            "Maximum unmap block descriptor count" => "/block_limits/max_unmap_descriptors",
            "Optimal unmap granularity" => "/block_limits/optimal_unmap_granularity_blocks",
            "Unmap granularity alignment" => "/block_limits/unmap_granularity_alignment",
            "Maximum write same length" => "/block_limits/max_write_same_blocks",
            "Maximum atomic transfer length" => "/block_limits/max_atomic_transfer_blocks",
            "Atomic alignment" => "/block_limits/atomic_alignment_blocks",
            "Atomic transfer length granularity" => "/block_limits/atomic_granularity_blocks",
            "Maximum atomic transfer length with atomic boundary" => {
                "/block_limits/max_atomic_transfer_with_boundary_blocks"
            }
            "Maximum atomic boundary size" => "/block_limits/max_atomic_boundary_blocks",
            "Nominal rotation rate" => "/block_device_characteristics/rotation_rpm",
            "WABEREQ" => "/block_device_characteristics/write_after_block_erase_required",
            "WACEREQ" => "/block_device_characteristics/write_after_crypto_erase_required",
            "ZONED" => "/block_device_characteristics/zoned",
            "RBWZ" => "/block_device_characteristics/reassign_background_write_zeroes",
            "BOCS" => "/block_device_characteristics/background_operation_control",
            "FUAB" => "/block_device_characteristics/force_unit_access_behaviour",
            "VBULS" => "/block_device_characteristics/verify_unmapped",
            "DEPOPULATION_TIME" => "/block_device_characteristics/depopulation_seconds",
            "Unmap command supported (LBPU)" => "/logical_block_provisioning/unmap",
            "Write same (16) with unmap bit supported (LBPWS)" => {
                "/logical_block_provisioning/write_same_16_unmap"
            }
            "Write same (10) with unmap bit supported (LBPWS10)" => {
                "/logical_block_provisioning/write_same_10_unmap"
            }
            "Logical block provisioning read zeros (LBPRZ)" => "/logical_block_provisioning/reads_zeroes",
            "Anchored LBAs supported (ANC_SUP)" => "/logical_block_provisioning/anchors",
            "Threshold exponent" => "/logical_block_provisioning/threshold_exponent",
            "Descriptor present (DP)" => "/logical_block_provisioning/descriptor_present",
            "Minimum percentage" => "/logical_block_provisioning/min_percentage",
            "Provisioning type" => "/logical_block_provisioning/provisioning_type",
            "Threshold percentage" => "/logical_block_provisioning/threshold_percentage",
            "Utilization type" => "/block_device_characteristics_extension/utilization_type",
            "Utilization units" => "/block_device_characteristics_extension/utilization_units",
            "Utilization interval" => "/block_device_characteristics_extension/utilization_interval",
            "Utilization B" => "/block_device_characteristics_extension/utilization_b",
            "Utilization A" => "/block_device_characteristics_extension/utilization_a",
            _ => continue,
        };
        let ours = match at(pointer) {
            Some(Value::Bool(flag)) => json!(u8::from(flag)),
            Some(value) => value,
            None => continue,
        };
        // Some names stand in front of the number, which is then in brackets.
        let theirs = behind(value, "[0x")
            .and_then(|v| number(&format!("0x{v}")))
            .filter(|_| !value.starts_with(|c: char| c.is_ascii_digit()))
            .or_else(|| number(value));
        if let Some(theirs) = theirs {
            tally.equal(KIND, &case.name, name, &ours, &json!(theirs));
        }
    }
    if document["page_code"] == json!(0xb2) && at("/logical_block_provisioning/provisioning_group").is_some()
    {
        let identifier = text.last().map(|l| l.trim()).unwrap_or_default();
        tally.equal(
            KIND,
            &case.name,
            "provisioning group",
            &at("/logical_block_provisioning/provisioning_group/identifier").unwrap_or_default(),
            &json!(identifier),
        );
    }
}

/// sg_vpd prints designators by association: logical unit, target port, target device.
fn designators(tally: &mut Tally, case: &Case, text: &[&str], document: &Value) {
    const KIND: &str = "vpd";
    let list = document
        .pointer("/device_identification/designators")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let mut association = "logical_unit";
    let mut index = 0;
    let mut current = Value::Null;
    let mut dump = String::new();
    for line in text.iter().skip(1) {
        let trimmed = line.trim();
        let pick = |association: &str, index: usize| {
            list.iter()
                .filter(|d| d["association"] == json!(association))
                .nth(index)
                .cloned()
                .unwrap_or_default()
        };
        if let Some(name) = match trimmed {
            "Addressed logical unit:" => Some("logical_unit"),
            "Target port:" => Some("target_port"),
            "Target device that contains addressed lu:" => Some("target_device"),
            _ => None,
        } {
            association = name;
            index = 0;
            continue;
        }
        if let Some(rest) = trimmed.strip_prefix("designator type: ") {
            check_dump(tally, case, &current, &mut dump);
            current = pick(association, index);
            index += 1;
            let (name, code_set) = rest.split_once(",  code set: ").unwrap_or((rest, ""));
            let name = name.split(" [").next().unwrap_or(name);
            tally.equal(
                KIND,
                &case.name,
                "designator type",
                &current["designator_type_name"],
                &json!(name),
            );
            tally.equal(
                KIND,
                &case.name,
                "code set",
                &current["code_set"],
                &json!(code_set),
            );
            continue;
        }
        let mut same =
            |what: &str, ours: &Value, theirs: Value| tally.equal(KIND, &case.name, what, ours, &theirs);
        if trimmed.starts_with("0x") {
            same("identifier", &current["identifier"], json!(trimmed));
        } else if let Some(theirs) = trimmed.strip_prefix("vendor id: ") {
            same("vendor id", &current["vendor_id"], json!(theirs.trim()));
        } else if let Some(theirs) = trimmed.strip_prefix("vendor specific: ") {
            same("vendor specific", &current["text"], json!(theirs.trim()));
        } else if let Some(theirs) = trimmed.strip_prefix("Relative target port: ") {
            same(
                "relative port",
                &current["relative_target_port"],
                json!(number(theirs)),
            );
        } else if let Some(theirs) = trimmed.strip_prefix("Target port group: ") {
            same("port group", &current["target_port_group"], json!(number(theirs)));
        } else if let Some(theirs) = trimmed.strip_prefix("Logical unit group: ") {
            same(
                "unit group",
                &current["logical_unit_group"],
                json!(number(theirs)),
            );
        } else if let Some(theirs) = behind(trimmed, "UUID: ") {
            same("uuid", &current["uuid"], json!(theirs));
        } else if let Some(theirs) = trimmed.strip_prefix("USB device address: ") {
            same(
                "usb address",
                &current["usb_device_address"],
                json!(number(theirs)),
            );
        } else if let Some(theirs) = trimmed.strip_prefix("USB interface number: ") {
            same(
                "usb interface",
                &current["usb_interface_number"],
                json!(number(theirs)),
            );
        } else if let Some(theirs) = behind(trimmed, "bus number: ") {
            let bus = current["pcie_routing_id"].as_u64().map(|r| r >> 8);
            same("pcie bus", &json!(bus), json!(number(theirs)));
        } else if let Some(theirs) = trimmed.strip_prefix("function number: ") {
            let function = current["pcie_routing_id"].as_u64().map(|r| r & 0xff);
            same("pcie function", &json!(function), json!(number(theirs)));
        } else if current["designator_type"] == json!(8) && !trimmed.ends_with("string:") {
            same("name string", &current["text"], json!(trimmed));
        } else if hex_row(trimmed).is_some() && !line.starts_with(' ') {
            dump.push_str(&hex_row(trimmed).unwrap_or_default());
        }
    }
    check_dump(tally, case, &current, &mut dump);
}

/// `11 22 33  44 ..    ASCII` of a hex dump, as joined digits.
fn hex_row(line: &str) -> Option<String> {
    let area = line.get(..50).unwrap_or(line);
    let row: String = area
        .split_whitespace()
        .take_while(|t| t.len() == 2 && t.bytes().all(|b| b.is_ascii_hexdigit()))
        .collect();
    (!row.is_empty()).then_some(row)
}

fn check_dump(tally: &mut Tally, case: &Case, current: &Value, dump: &mut String) {
    if !dump.is_empty() {
        let ours = current["hex"].as_str().unwrap_or_default().replace(' ', "");
        tally.equal("vpd", &case.name, "designator bytes", &json!(ours), &json!(dump));
        dump.clear();
    }
}

fn format_presets(tally: &mut Tally, case: &Case, text: &[&str], document: &Value) {
    let presets = document["format_presets"].as_array().cloned().unwrap_or_default();
    let mut current = Value::Null;
    let mut next = presets.into_iter();
    for line in text {
        let Some((name, value)) = line.trim().split_once(": ") else {
            continue;
        };
        let key = match name {
            "Preset identifier" => {
                current = next.next().unwrap_or_default();
                "preset_identifier"
            }
            "schema type" => "schema_type",
            "logical blocks per physical block exponent type" => "logical_per_physical_exponent",
            "logical block length" => "logical_block_bytes",
            "designed last LBA" => "designed_last_lba",
            "FMPT_INFO" => "format_protection_information",
            "protection field usage" => "protection_field_usage",
            "protection interval exponent" => "protection_interval_exponent",
            "logical blocks per zone" => "blocks_per_zone",
            "low LBA conventional zones percentage" => "low_conventional_tenths_percent",
            "high LBA conventional zones percentage" => "high_conventional_tenths_percent",
            _ => continue,
        };
        let theirs = match value.strip_suffix(" %") {
            Some(percent) => percent.parse::<f64>().ok().map(|p| (p * 10.0).round() as u64),
            None => number(value),
        };
        tally.equal("vpd", &case.name, name, &current[key], &json!(theirs));
    }
}
