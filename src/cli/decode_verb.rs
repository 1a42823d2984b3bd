//! `decode KIND FILE`.

use std::io::Read;
use std::path::Path;

use super::args::DecodeArgs;
use super::exit::Exit;
use super::{Context, Stop, decode, print};

/// Dumps are small; more than this is the wrong file.
const MAX_INPUT_BYTES: u64 = 4 << 20;

pub(super) fn run(context: &Context, args: &DecodeArgs) -> Result<Exit, Stop> {
    let bytes = read(&args.file)?;
    let identify = args.identify.as_deref().map(read).transpose()?;
    let thresholds = args.thresholds.as_deref().map(read).transpose()?;
    let document = decode::decode(args.kind, &bytes, identify.as_deref(), thresholds.as_deref())
        .map_err(|e| Stop::BadInput(format!("{}: {e}", args.file.display())))?;
    if context.common.json {
        context.print_json_pretty(&document)?;
    } else {
        print(&decode::render_text(&document))?;
    }
    Ok(Exit::Done)
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
