//! `raw DEV CDB...`: one command that only reads.

use std::io::Read;
use std::path::Path;

use serde::Serialize;

use super::args::RawArgs;
use super::exit::Exit;
use super::{Context, Stop, print};
use crate::drive::{OpenOptions, Raw};
use crate::report::{Style, Tone};
use crate::scsi::sense::Sense;
use crate::text;
use crate::transport::layer::guard;
use crate::transport::{Cdb, Command, Completion, Data, Status};

/// Document of `raw`: `drivethru-raw/1`.
#[derive(Serialize)]
struct RawReport {
    schema: &'static str,
    schema_version: u32,
    device: String,
    command: String,
    cdb_hex: String,
    status: u8,
    status_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    sense: Option<Sense>,
    sense_hex: String,
    transferred_bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    data_hex: Option<String>,
    elapsed_us: u64,
}

/// Most bytes of one data phase.
const MAX_DATA_BYTES: usize = 65_536;

/// A payload is small; a larger file is the wrong one.
fn read_capped(path: &Path) -> Result<Vec<u8>, Stop> {
    let failed = |e: std::io::Error| Stop::BadInput(format!("{}: {e}", path.display()));
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(failed)?;
    file.take(MAX_DATA_BYTES as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() > MAX_DATA_BYTES {
        return Err(Stop::BadInput(format!(
            "{}: more than {MAX_DATA_BYTES} bytes",
            path.display()
        )));
    }
    Ok(bytes)
}

pub(super) fn run(context: &Context, args: &RawArgs) -> Result<Exit, Stop> {
    let bytes = text::parse_hex(&args.cdb.join(" "))
        .ok_or_else(|| Stop::Usage("the CDB is not hex bytes".to_owned()))?;
    let cdb = Cdb::new(&bytes).filter(|c| c.as_bytes().len() <= 16);
    let cdb =
        cdb.ok_or_else(|| Stop::Usage(format!("a CDB has 6 to 16 bytes, this one has {}", bytes.len())))?;
    if context.common.mask {
        return Err(Stop::Usage("--mask cannot hide what raw bytes hold".to_owned()));
    }
    let data = match (&args.data, args.in_bytes) {
        (Some(path), _) => Data::Out(read_capped(path)?),
        (None, Some(len)) => Data::In {
            len_bytes: len as usize,
        },
        // What the CDB itself asks for.
        (None, None) => match guard::data_in_bytes(cdb.as_bytes()) {
            None | Some(0) => Data::None,
            Some(len_bytes) if len_bytes <= MAX_DATA_BYTES => Data::In { len_bytes },
            Some(_) => {
                return Err(Stop::Usage(format!(
                    "it asks for more than {MAX_DATA_BYTES} bytes"
                )));
            }
        },
    };
    context.start_recording()?;
    let options: OpenOptions = context.open_options(&args.device);
    let command = Command {
        cdb,
        data,
        timeout: options.timeout,
    };
    let mut raw = Raw::open(&args.device, &options)?;
    let completion = raw.execute(command)?;
    let sense = Sense::parse(&completion.sense).ok();
    let exit = judge(&completion, sense.as_ref());
    let report = RawReport {
        schema: "drivethru-raw/1",
        schema_version: 1,
        device: args.device.clone(),
        command: cdb.name(),
        cdb_hex: cdb.to_string(),
        status: completion.status.0,
        status_name: completion.status.to_string(),
        sense,
        sense_hex: text::hex(&completion.sense),
        transferred_bytes: completion.transferred_bytes,
        data_hex: completion.data.as_deref().map(text::hex),
        elapsed_us: u64::try_from(completion.elapsed.as_micros()).unwrap_or(u64::MAX),
    };
    if context.common.json {
        context.print_json_pretty(&report)?;
    } else {
        print(&render(&report, completion.data.as_deref(), exit, context.style))?;
    }
    Ok(exit)
}

/// SAT reports success as CHECK CONDITION with registers when the CDB asks for them.
fn judge(completion: &Completion, sense: Option<&Sense>) -> Exit {
    match (completion.status, sense) {
        (Status::GOOD, _) => Exit::Done,
        (Status::CHECK_CONDITION, Some(sense)) => match sense.ata.and_then(|r| r.is_success()) {
            Some(true) => Exit::Done,
            Some(false) => Exit::Unsupported,
            None if sense.key <= 1 => Exit::Done,
            None if sense.key == 5 => Exit::Unsupported,
            None => Exit::Failure,
        },
        _ => Exit::Failure,
    }
}

fn render(report: &RawReport, data: Option<&[u8]>, exit: Exit, style: Style) -> String {
    let tone = if exit == Exit::Done { Tone::Good } else { Tone::Bad };
    let mut out = format!("{}: {}\n", report.command, style.paint(tone, &report.status_name));
    if !report.sense_hex.is_empty() {
        out.push_str(&format!("sense {}\n", report.sense_hex));
    }
    if let Some(sense) = &report.sense {
        let text = sense.code_text().unwrap_or_default();
        out.push_str(&format!(
            "  {} {} {text}\n",
            sense.key_name(),
            sense.code_triple()
        ));
        if let Some(registers) = &sense.ata {
            let shown = |r: Option<u8>| r.map_or_else(|| "--".to_owned(), |b| format!("{b:02x}"));
            out.push_str(&format!(
                "  registers: status {} error {} count {} lba {} {} {} device {}\n",
                shown(registers.status),
                shown(registers.error),
                shown(registers.count),
                shown(registers.lba_high),
                shown(registers.lba_mid),
                shown(registers.lba_low),
                shown(registers.device),
            ));
        }
    }
    for (row, chunk) in data.unwrap_or_default().chunks(16).enumerate() {
        let ascii: String = chunk
            .iter()
            .map(|&b| {
                if (0x20..0x7f).contains(&b) {
                    char::from(b)
                } else {
                    '.'
                }
            })
            .collect();
        out.push_str(&format!("{:04x}: {:<47}  {ascii}\n", row * 16, text::hex(chunk)));
    }
    out
}
