//! Every bridge on both transports, before programs that nobody here wrote, and before ours.

use drivethru_vm::{GuestDisk, ServedDevice};
use serde_json::Value;

use crate::bench::{Bench, after, fresh, json, text};

/// A device to try: profile with options, its name in the table, and the driver that Linux binds to the real one.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    pub spec: &'static str,
    pub driver: &'static str,
}

/// Every bridge as the real one is used, and those that have UAS once more without it.
pub const CASES: &[Case] = &[
    case("asm1051-usb2", "usb-storage"),
    case("asm1051e", "usb-storage"),
    case("asm1053e", "uas"),
    case("asm1053e,transport=bot", "usb-storage"),
    case("asm1153e", "uas"),
    case("asm1153e,transport=bot", "usb-storage"),
    case("asm1153e,speed=480", "uas"),
    case("asm225cm", "uas"),
    case("asm225cm,transport=bot", "usb-storage"),
    case("hdd", "usb-storage"),
    case("hdd-4kn", "uas"),
    case("hdd-4kn,transport=bot", "usb-storage"),
    case("jms567", "usb-storage"),
    case("jms578", "uas"),
    case("jms578,transport=bot", "usb-storage"),
    case("mushkin-ventura-ultra-120gb", "uas"),
    case("phison-stick", "usb-storage"),
    case("rtl9201", "uas"),
    case("rtl9201,transport=bot", "usb-storage"),
    case("stick", "usb-storage"),
    case("vl716", "uas"),
    case("vl716,transport=bot", "usb-storage"),
];

const fn case(spec: &'static str, driver: &'static str) -> Case {
    Case { spec, driver }
}

/// Columns of the table.
pub const COLUMNS: &[&str] = &[
    "driver",
    "lsusb -v",
    "sg_inq",
    "sg_readcap",
    "sg_vpd",
    "sg_sat_identify",
    "smartctl -d sat",
    "smartctl -d sat,12",
    "hdparm -I",
    "hdparm -N",
    "drivethru",
    "kernel",
];

/// A step: what it compares goes to the bench, and its word into the table.
type Step = fn(&Bench, &Model, &str) -> Result<String, String>;

/// The sensor is pinned, so that what the programs read is known.
const CELSIUS: i64 = 37;

/// What the profile's document says, read without our library.
pub struct Model {
    document: Value,
}

impl Model {
    pub fn of(spec: &str) -> Result<Self, String> {
        let shown = std::process::Command::new(env!("CARGO_BIN_EXE_drivethru"))
            .args(["sim", "show", spec, "--json"])
            .output()
            .map_err(|error| error.to_string())?;
        let document =
            serde_json::from_slice(&shown.stdout).map_err(|error| format!("sim show {spec}: {error}"))?;
        Ok(Self { document })
    }

    pub fn text(&self, pointer: &str) -> String {
        match self.document.pointer(pointer) {
            Some(Value::String(text)) => text.clone(),
            _ => String::new(),
        }
    }

    pub fn number(&self, pointer: &str) -> u64 {
        self.document
            .pointer(pointer)
            .and_then(Value::as_u64)
            .unwrap_or_default()
    }

    pub fn is(&self, pointer: &str) -> bool {
        self.document
            .pointer(pointer)
            .and_then(Value::as_bool)
            .unwrap_or_default()
    }

    pub fn has_page(&self, page: u64) -> bool {
        self.document
            .pointer("/bridge/vpd_pages")
            .and_then(Value::as_array)
            .is_some_and(|pages| pages.iter().any(|p| p.as_u64() == Some(page)))
    }

    /// Whether ATA PASS-THROUGH of this length works.
    pub fn takes(&self, cdb_bytes: u64) -> bool {
        let sat = self.text("/bridge/sat");
        sat == "both" || sat == cdb_bytes.to_string()
    }

    fn has_uas(&self) -> bool {
        self.document.pointer("/usb/uas").is_some()
    }

    /// Whether non-data commands give their registers back.
    fn gives_registers(&self) -> bool {
        self.text("/bridge/ckcond") == "honour" && self.takes(12)
    }
}

/// All the peers at one device. The device's name in the table is its spec.
pub fn peers(bench: &Bench, case: &Case) -> Result<(), String> {
    let spec = format!("{},temp={CELSIUS}", case.spec);
    let (device, disk) = bench.plug(&spec)?;
    let model = Model::of(&spec)?;
    peers_agree(bench, case, &model, &device, &disk)?;
    bench.cell(case.spec, "kernel", kernel_word(bench)?);
    Ok(())
}

fn kernel_word(bench: &Bench) -> Result<&'static str, String> {
    Ok(if bench.kernel_is_quiet(ALSO_USUAL)? {
        "quiet"
    } else {
        "NOISY"
    })
}

/// What the kernel says when a program asks a bridge for what it does not have.
const ALSO_USUAL: &[&str] = &[];

/// The same with a model that may lie: for negative controls.
pub fn peers_agree(
    bench: &Bench,
    case: &Case,
    model: &Model,
    device: &ServedDevice<'_>,
    disk: &GuestDisk,
) -> Result<(), String> {
    let node = disk.node.as_str();
    let steps: &[(&str, Step)] = &[
        ("lsusb -v", lsusb),
        ("sg_inq", sg_inq),
        ("sg_readcap", sg_readcap),
        ("sg_vpd", sg_vpd),
        ("sg_sat_identify", sg_sat_identify),
        ("smartctl -d sat", smartctl_sat),
        ("smartctl -d sat,12", smartctl_sat_12),
        ("hdparm -I", hdparm_identify),
        ("hdparm -N", hdparm_native_max),
        ("drivethru", drivethru_reads),
    ];
    let driver = device.driver().map_err(text)?.unwrap_or_default();
    bench.same("driver", driver.as_str(), case.driver);
    bench.cell(case.spec, "driver", driver);
    let generic = bench.well(&format!("ls /sys/block/{}/device/scsi_generic", disk.name()))?;
    bench.holds("there is a /dev/sgN", generic.starts_with("sg"));
    for (column, step) in steps {
        let before = bench.failure_count();
        let word = match step(bench, model, node) {
            Ok(word) => word,
            Err(why) => {
                bench.fail(format!("{column}: {why}"));
                String::new()
            }
        };
        let good = bench.failure_count() == before;
        bench.cell(
            case.spec,
            column,
            if good {
                word
            } else {
                crate::table::FAILED.to_owned()
            },
        );
    }
    Ok(())
}

/// The word in the table for what agrees in this many values.
fn agree(values: usize) -> Result<String, String> {
    Ok(format!("{values} ✓"))
}

/// The word for what the real bridge would refuse as well, and does.
fn refused() -> Result<String, String> {
    Ok("refused".to_owned())
}

fn lsusb(bench: &Bench, model: &Model, _: &str) -> Result<String, String> {
    let id = format!("{}:{}", model.text("/usb/vid"), model.text("/usb/pid"));
    let out = bench.well(&format!("lsusb -v -d {id} 2>/dev/null"))?;
    let bcd = model.text("/usb/bcd_device");
    let whole = bcd[..2].trim_start_matches('0');
    let bcd = format!("{}.{}", if whole.is_empty() { "0" } else { whole }, &bcd[2..]);
    let last = |label: &str| {
        after(&out, label).map(|rest| {
            rest.split_once(' ')
                .map_or(String::new(), |(_, s)| s.trim().to_owned())
        })
    };
    bench.same("lsusb: bcdDevice", after(&out, "bcdDevice"), Some(bcd));
    bench.same(
        "lsusb: iManufacturer",
        last("iManufacturer"),
        Some(model.text("/usb/manufacturer")),
    );
    bench.same(
        "lsusb: iProduct",
        last("iProduct"),
        Some(model.text("/usb/product")),
    );
    bench.same("lsusb: iSerial", last("iSerial"), Some(model.text("/usb/serial")));
    bench.same(
        "lsusb: UAS setting",
        out.contains("bInterfaceProtocol     98"),
        model.has_uas(),
    );
    let streams = after(&out, "MaxStreams").and_then(|text| text.parse().ok());
    let expected = (model.has_uas() && model.number("/usb/speed_mbit_s") >= 5000)
        .then(|| model.number("/usb/uas/streams"));
    bench.same("lsusb: streams", streams, expected);
    agree(6)
}

fn sg_inq(bench: &Bench, model: &Model, node: &str) -> Result<String, String> {
    let out = bench.well(&format!("sg_inq {node}"))?;
    for (label, field) in [
        ("Vendor identification:", "/bridge/vendor"),
        ("Product identification:", "/bridge/product"),
        ("Product revision level:", "/bridge/revision"),
    ] {
        bench.same(label, after(&out, label), Some(model.text(field)));
    }
    bench.same("RMB", out.contains("RMB=1"), model.is("/bridge/removable"));
    agree(4)
}

fn sg_readcap(bench: &Bench, model: &Model, node: &str) -> Result<String, String> {
    let number = |text: &str, label: &str| -> Option<u64> {
        after(text, label)?
            .split(|c: char| !c.is_ascii_digit())
            .next()?
            .parse()
            .ok()
    };
    let (sectors, bytes) = (
        model.number("/medium/sectors"),
        model.number("/medium/logical_sector_bytes"),
    );
    let short = bench.well(&format!("sg_readcap {node}"))?;
    bench.same(
        "READ CAPACITY(10): blocks",
        number(&short, "Number of logical blocks="),
        Some(sectors),
    );
    bench.same(
        "READ CAPACITY(10): bytes",
        number(&short, "Logical block length="),
        Some(bytes),
    );
    let long = bench.run(&format!("sg_readcap --16 {node}"))?;
    if !model.is("/bridge/sixteen_byte_block_commands") {
        bench.same("READ CAPACITY(16) is refused", long.status, 9);
        return agree(3);
    }
    let long = long.stdout_text();
    bench.same(
        "READ CAPACITY(16): blocks",
        number(&long, "Number of logical blocks="),
        Some(sectors),
    );
    bench.same(
        "READ CAPACITY(16): bytes",
        number(&long, "Logical block length="),
        Some(bytes),
    );
    bench.same(
        "READ CAPACITY(16): LBPME",
        number(&long, "lbpme="),
        Some(u64::from(model.is("/bridge/unmap"))),
    );
    let zeroes = model.is("/bridge/unmap") && model.is("/drive/trim/zeroes");
    bench.same(
        "READ CAPACITY(16): LBPRZ",
        number(&long, "lbprz="),
        Some(u64::from(zeroes)),
    );
    let physical = number(&long, "Logical blocks per physical block exponent=").map(|e| bytes << e);
    bench.same(
        "READ CAPACITY(16): physical block",
        physical,
        Some(model.number("/medium/physical_sector_bytes")),
    );
    agree(7)
}

fn sg_vpd(bench: &Bench, model: &Model, node: &str) -> Result<String, String> {
    let mut values = 0;
    for (page, name, code) in [
        ("bl", "block limits", 0xb0),
        ("lbpv", "provisioning", 0xb2),
        ("ai", "ATA information", 0x89),
    ] {
        let out = bench.run(&format!("sg_vpd -p {page} {node}"))?;
        let there = out.status == 0;
        values += 1;
        bench.same(
            &format!("VPD page {code:x}h, {name}"),
            there,
            model.has_page(code),
        );
        if !there {
            continue;
        }
        let out = out.stdout_text();
        match page {
            "bl" => {
                let most = after(&out, "Maximum unmap LBA count:").is_some_and(|text| !text.starts_with('0'));
                bench.same("block limits: unmap", most, model.is("/bridge/unmap"));
                values += 1;
            }
            "lbpv" => {
                let unmap = after(&out, "Unmap command supported (LBPU):");
                bench.same(
                    "LBPU",
                    unmap,
                    Some(u8::from(model.is("/bridge/unmap")).to_string()),
                );
                values += 1;
            }
            _ => {
                bench.holds(
                    "the page has the drive's model",
                    out.contains(model.text("/drive/model").as_str()),
                );
                bench.holds("the page has a SATA signature", out.contains("SATA"));
                values += 2;
            }
        }
    }
    agree(values)
}

fn sg_sat_identify(bench: &Bench, model: &Model, node: &str) -> Result<String, String> {
    let mut values = 0;
    for length in [12, 16] {
        let out = bench.run(&format!("sg_sat_identify --len={length} --raw {node}"))?;
        values += 1;
        if !bench.same(
            &format!("{length}-byte CDB taken"),
            out.status == 0,
            model.takes(length),
        ) || out.status != 0
        {
            continue;
        }
        let page = &out.stdout;
        let field = |words: std::ops::Range<usize>| -> String {
            let bytes: Vec<u8> = page[2 * words.start..2 * words.end]
                .chunks_exact(2)
                .flat_map(|pair| [pair[1], pair[0]])
                .collect();
            String::from_utf8_lossy(&bytes).trim().to_owned()
        };
        if !bench.same("length", page.len(), 512) {
            continue;
        }
        bench.same("model", field(27..47), model.text("/drive/model"));
        bench.same("serial", field(10..20), model.text("/drive/serial"));
        bench.same("firmware", field(23..27), model.text("/drive/firmware"));
        let sum = page.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
        bench.same("checksum", sum, 0);
        values += 5;
    }
    if model.takes(12) || model.takes(16) {
        agree(values)
    } else {
        refused()
    }
}

fn smartctl_sat(bench: &Bench, model: &Model, node: &str) -> Result<String, String> {
    smartctl(bench, model, &format!("smartctl -j -d sat -x {node}"), 16)
}

fn smartctl_sat_12(bench: &Bench, model: &Model, node: &str) -> Result<String, String> {
    smartctl(bench, model, &format!("smartctl -j -d sat,12 -x {node}"), 12)
}

fn smartctl(bench: &Bench, model: &Model, command: &str, cdb_bytes: u64) -> Result<String, String> {
    let output = bench.run(command)?;
    let got = json(&output)?;
    let code = output.status;
    if !model.takes(cdb_bytes) {
        bench.same("smartctl cannot open it", code & 2, 2);
        return refused();
    }
    // Bit 2 tells of some log that is not there, or of registers that did not come back.
    bench.same("smartctl: its exit code", code & !4, 0);
    let word = |pointer: &str| {
        got.pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let number = |pointer: &str| got.pointer(pointer).and_then(Value::as_u64);
    bench.same("model_name", word("/model_name"), model.text("/drive/model"));
    bench.same(
        "serial_number",
        word("/serial_number"),
        model.text("/drive/serial"),
    );
    bench.same(
        "firmware_version",
        word("/firmware_version"),
        model.text("/drive/firmware"),
    );
    bench.same(
        "blocks",
        number("/user_capacity/blocks"),
        Some(model.number("/medium/sectors")),
    );
    bench.same(
        "logical block",
        number("/logical_block_size"),
        Some(model.number("/medium/logical_sector_bytes")),
    );
    bench.same(
        "physical block",
        number("/physical_block_size"),
        Some(model.number("/medium/physical_sector_bytes")),
    );
    let rotation = model.number("/drive/rotation");
    bench.same(
        "rotation_rate",
        number("/rotation_rate"),
        Some(if rotation == 1 { 0 } else { rotation }),
    );
    bench.same(
        "temperature",
        number("/temperature/current"),
        Some(CELSIUS as u64),
    );
    bench.same(
        "smart_status",
        got.pointer("/smart_status/passed").cloned(),
        Some(Value::Bool(true)),
    );
    let ids: Vec<u64> = got
        .pointer("/ata_smart_attributes/table")
        .and_then(Value::as_array)
        .map(|table| table.iter().filter_map(|a| a["id"].as_u64()).collect())
        .unwrap_or_default();
    let expected: Vec<u64> = model
        .document
        .pointer("/drive/attributes")
        .and_then(Value::as_array)
        .map(|table| table.iter().filter_map(|a| a["id"].as_u64()).collect())
        .unwrap_or_default();
    bench.same("attributes", ids, expected);
    let (wide, sct) = (
        model.is("/bridge/ext") && cdb_bytes == 16,
        model.number("/drive/sct"),
    );
    let mut values = 11;
    if sct & 1 == 1 {
        bench.same(
            "SCT status: temperature",
            number("/ata_sct_status/temperature/current"),
            Some(CELSIUS as u64),
        );
        values += 1;
    }
    let statistics = model
        .document
        .pointer("/drive/statistics")
        .and_then(Value::as_array)
        .is_some_and(|pages| !pages.is_empty());
    if wide && statistics {
        let there = got.pointer("/ata_device_statistics/pages").is_some();
        bench.same("device statistics", there, true);
        values += 1;
    }
    let mut word = format!("{values} ✓");
    if !model.gives_registers() {
        word.push_str(", no registers");
    }
    Ok(word)
}

fn hdparm_identify(bench: &Bench, model: &Model, node: &str) -> Result<String, String> {
    let output = bench.run(&format!("hdparm -I {node}"))?;
    let out = output.stdout_text();
    if !model.takes(16) {
        bench.holds("hdparm gets no identity", !out.contains("Model Number:"));
        return refused();
    }
    bench.same("hdparm: its exit code", output.status, 0);
    for (label, field) in [
        ("Model Number:", "/drive/model"),
        ("Serial Number:", "/drive/serial"),
        ("Firmware Revision:", "/drive/firmware"),
    ] {
        bench.same(label, after(&out, label), Some(model.text(field)));
    }
    let sectors = after(&out, "LBA48  user addressable sectors:").and_then(|text| text.parse().ok());
    bench.same("sectors", sectors, Some(model.number("/medium/sectors")));
    let trim = out.contains("Data Set Management TRIM supported");
    bench.same("TRIM", trim, model.number("/drive/trim/max_blocks") > 0);
    agree(5)
}

/// `max sectors = 937703088/937703088, HPA is disabled`. hdparm reads registers from descriptor sense only.
fn hdparm_native_max(bench: &Bench, model: &Model, node: &str) -> Result<String, String> {
    let output = bench.run(&format!("hdparm -N {node}"))?;
    let (out, err) = (output.stdout_text(), output.stderr_text());
    let sectors = model.number("/medium/sectors");
    let readable = model.takes(16)
        && model.is("/bridge/ext")
        && model.text("/bridge/ckcond") == "honour"
        && model.text("/bridge/sense") == "descriptor";
    if !readable {
        let wrong = format!("{sectors}/{sectors}");
        bench.holds(
            &format!("hdparm cannot know: {out:?} {err:?}"),
            !out.contains(&wrong) || !model.takes(16),
        );
        return Ok("cannot know".to_owned());
    }
    let found = after(&out, "max sectors   =").unwrap_or_default();
    bench.holds(
        &format!("hdparm -N: {out:?} {err:?}"),
        found.starts_with(&format!("{sectors}/{sectors}")) && found.contains("is disabled"),
    );
    agree(1)
}

/// Ours: the model's values, through the block node.
fn drivethru_reads(bench: &Bench, model: &Model, node: &str) -> Result<String, String> {
    let sat = model.takes(12) || model.takes(16);
    let list = json(&bench.run(&fresh("list --json"))?)?;
    let listed = list["devices"]
        .as_array()
        .is_some_and(|devices| devices.iter().any(|d| d["host"]["block_node"] == node));
    bench.holds("list has it", listed);
    let info = bench.ours(&format!("info --json {node}"))?;
    bench.same("info: its exit code", info.status, 0);
    let info = json(&info)?;
    if !sat {
        for verb in ["temp", "smart"] {
            let output = bench.ours(&format!("{verb} --json {node}"))?;
            bench.same(&format!("{verb}: its exit code"), output.status, 5);
        }
        return refused();
    }
    let find = |key: &str| find(&info, key).cloned();
    bench.same(
        "info: model",
        find("model"),
        Some(model.text("/drive/model").into()),
    );
    bench.same(
        "info: serial",
        find("serial"),
        Some(model.text("/drive/serial").into()),
    );
    bench.same(
        "info: sectors",
        find("sectors"),
        Some(model.number("/medium/sectors").into()),
    );
    let temp = bench.ours(&format!("temp --json {node}"))?;
    bench.same("temp: its exit code", temp.status, 0);
    let temp = json(&temp)?;
    bench.same(
        "temp: celsius",
        temp.pointer("/temperature/celsius").and_then(Value::as_i64),
        Some(CELSIUS),
    );
    let smart = bench.ours(&format!("smart --json {node}"))?;
    bench.same("smart: its exit code", smart.status, 0);
    let smart = json(&smart)?;
    let attributes = self::find(&smart, "attributes")
        .and_then(Value::as_array)
        .map(Vec::len);
    let expected = model
        .document
        .pointer("/drive/attributes")
        .and_then(Value::as_array)
        .map(Vec::len);
    bench.same("smart: attributes", attributes, expected);
    agree(9)
}

/// The first value under this key, from the outside in.
fn find<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    match value {
        Value::Object(object) => object
            .get(key)
            .filter(|v| !v.is_object())
            .or_else(|| object.values().find_map(|inner| find(inner, key))),
        Value::Array(list) => list.iter().find_map(|inner| find(inner, key)),
        _ => None,
    }
}
