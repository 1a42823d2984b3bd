//! `decode KIND FILE`.

use std::io::Read;
use std::path::Path;

use serde_json::Value;

use super::args::DecodeArgs;
use super::exit::Exit;
use super::{Context, Stop, decode, note, print};
use crate::text::mask_serial;

/// Dumps are small; more than this is the wrong file.
const MAX_INPUT_BYTES: u64 = 4 << 20;

pub(super) fn run(context: &Context, args: &DecodeArgs) -> Result<Exit, Stop> {
    let bytes = read(&args.file)?;
    let identify = args.identify.as_deref().map(read).transpose()?;
    let thresholds = args.thresholds.as_deref().map(read).transpose()?;
    let mut document = decode::decode(args.kind, &bytes, identify.as_deref(), thresholds.as_deref())
        .map_err(|e| Stop::BadInput(format!("{}: {e}", args.file.display())))?;
    let exit = judge(&document);
    if context.common.mask {
        mask(&mut document);
    }
    if context.common.json {
        context.print_json_pretty(&document)?;
    } else {
        print(&decode::render_text(&document))?;
    }
    Ok(exit)
}

/// Bytes that are not what they were said to be are shown, and called so.
fn judge(document: &Value) -> Exit {
    let says = |pointer: &str, word: &str| document.pointer(pointer).and_then(Value::as_str) == Some(word);
    if says("/belief/verdict", "rejected") {
        note("this does not look like IDENTIFY DEVICE data; see `belief`");
        return Exit::BadAnswer;
    }
    if document.pointer("/plausible").and_then(Value::as_bool) == Some(false) {
        note("this does not look like what it was said to be");
        return Exit::BadAnswer;
    }
    if says("/checksum", "invalid") {
        note("the checksum is wrong: some of this may be damaged");
    }
    Exit::Done
}

/// Hides what tells one device from its twins: serial numbers by their two first characters and length, other identifiers
/// wholly.
fn mask(value: &mut Value) {
    const IDENTIFIERS: [&str; 6] = [
        "wwn",
        "eui64",
        "nguid",
        "designators",
        "vendor_specific",
        "unit_serial_number",
    ];
    match value {
        Value::Object(fields) => {
            fields.retain(|key, _| !IDENTIFIERS.contains(&key.as_str()) && key != "hex");
            for (key, field) in fields.iter_mut() {
                match field {
                    Value::String(text) if key.contains("serial") => *text = mask_serial(text),
                    field => mask(field),
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(mask),
        _ => {}
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Stop> {
    let failed = |e: std::io::Error| Stop::BadInput(format!("{}: {e}", path.display()));
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        std::io::stdin()
            .lock()
            .take(MAX_INPUT_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(failed)?;
    } else {
        let file = std::fs::File::open(path).map_err(failed)?;
        file.take(MAX_INPUT_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(failed)?;
    }
    if bytes.len() as u64 > MAX_INPUT_BYTES {
        return Err(Stop::BadInput(format!(
            "{}: larger than any dump (4 MiB)",
            path.display()
        )));
    }
    decode::read_input(&bytes).map_err(|e| Stop::BadInput(format!("{}: {e}", path.display())))
}
