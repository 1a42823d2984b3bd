//! `report RUN.json`.

use std::io::{IsTerminal, Read, Write};
use std::path::Path;

use super::args::{ReportArgs, ReportFormat};
use super::exit::Exit;
use super::{Context, Stop};
use crate::bench::run::Run;
use crate::report::Style;
use crate::report::bench::chart::Plot;
use crate::report::bench::compare::Comparison;
use crate::report::bench::{self, csv, escape, fio, html, markdown, text};
use crate::text::mask_serial;

/// A run of a week at one sample a second is about 60 MB.
const MAX_INPUT_BYTES: u64 = 1 << 30;

pub(super) fn run(context: &Context, args: &ReportArgs) -> Result<Exit, Stop> {
    let format = format(args);
    let one = read(context, &args.file)?;
    let other = args
        .compare
        .as_deref()
        .map(|path| read(context, path))
        .transpose()?;
    let style = if args.out.is_some() {
        Style::default()
    } else {
        context.style
    };
    let document = match &other {
        None if context.common.json => format!("{}\n", bench::json(&one)).into_bytes(),
        None => single(&one, format, style)?,
        Some(other) => {
            let comparison = Comparison::new(&one, other);
            if context.common.json {
                let document = comparison.json().to_string();
                format!("{}\n", escape::json(&document)).into_bytes()
            } else {
                both(&comparison, format)?
            }
        }
    };
    let Some(path) = &args.out else {
        let mut out = std::io::stdout().lock();
        if format == ReportFormat::Png && !context.common.json && out.is_terminal() {
            return Err(Stop::Usage(
                "a picture is nothing for a terminal: name a file with --out".to_owned(),
            ));
        }
        out.write_all(&document)?;
        out.flush()?;
        return Ok(Exit::Done);
    };
    std::fs::write(path, document).map_err(|e| Stop::BadInput(format!("{}: {e}", path.display())))?;
    Ok(Exit::Done)
}

fn format(args: &ReportArgs) -> ReportFormat {
    let extension = args
        .out
        .as_deref()
        .and_then(Path::extension)
        .map(|e| e.to_string_lossy().to_ascii_lowercase());
    args.format.unwrap_or(match extension.as_deref() {
        Some("html" | "htm") => ReportFormat::Html,
        Some("svg") => ReportFormat::Svg,
        Some("png") => ReportFormat::Png,
        Some("md") => ReportFormat::Markdown,
        Some("csv") => ReportFormat::Csv,
        Some("log") => ReportFormat::Fio,
        _ => ReportFormat::Text,
    })
}

fn single(run: &Run, format: ReportFormat, style: Style) -> Result<Vec<u8>, Stop> {
    Ok(match format {
        ReportFormat::Html => html::run(run).into_bytes(),
        ReportFormat::Svg => bench::svg(run).into_bytes(),
        ReportFormat::Png => bench::png(run).map_err(|e| Stop::BadInput(e.to_string()))?,
        ReportFormat::Markdown => markdown::run(run, None).into_bytes(),
        ReportFormat::Text => text::run(run, style).into_bytes(),
        ReportFormat::Csv => csv::write(&run.samples).into_bytes(),
        ReportFormat::Fio => fio::bw_log(&run.samples, run.engine.block_bytes).into_bytes(),
    })
}

fn both(comparison: &Comparison<'_>, format: ReportFormat) -> Result<Vec<u8>, Stop> {
    let plot = || Plot::of_two(comparison.a, comparison.b);
    Ok(match format {
        ReportFormat::Html => html::compare(comparison).into_bytes(),
        ReportFormat::Svg => plot().svg().into_bytes(),
        ReportFormat::Png => plot().png().map_err(|e| Stop::BadInput(e.to_string()))?,
        ReportFormat::Markdown => markdown::compare(comparison).into_bytes(),
        ReportFormat::Text => comparison.text().into_bytes(),
        ReportFormat::Csv | ReportFormat::Fio => {
            return Err(Stop::Usage(
                "--compare makes html, svg, png, markdown or text: csv and fio hold one series".to_owned(),
            ));
        }
    })
}

fn read(context: &Context, path: &Path) -> Result<Run, Stop> {
    let bad = |what: String| Stop::BadInput(format!("{}: {what}", path.display()));
    let mut bytes = Vec::new();
    let result = if path == Path::new("-") {
        std::io::stdin()
            .lock()
            .take(MAX_INPUT_BYTES + 1)
            .read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|f| f.take(MAX_INPUT_BYTES + 1).read_to_end(&mut bytes))
    };
    result.map_err(|e| bad(e.to_string()))?;
    if bytes.len() as u64 > MAX_INPUT_BYTES {
        return Err(bad("larger than any run (1 GiB)".to_owned()));
    }
    let text = String::from_utf8(bytes).map_err(|e| bad(format!("no UTF-8: {}", e.utf8_error())))?;
    let mut run = bench::read(&text).map_err(|e| bad(e.to_string()))?;
    if context.common.mask {
        mask(&mut run)?;
    }
    Ok(run)
}

/// Hides the serial number, also where other strings of the run repeat it (a device may be named by it).
fn mask(run: &mut Run) -> Result<(), Stop> {
    let Some(serial) = run.device.serial.clone().filter(|s| !s.is_empty()) else {
        return Ok(());
    };
    fn walk(value: &mut serde_json::Value, serial: &str, masked: &str) {
        match value {
            serde_json::Value::String(text) => *text = text.replace(serial, masked),
            serde_json::Value::Array(list) => list.iter_mut().for_each(|v| walk(v, serial, masked)),
            serde_json::Value::Object(fields) => fields.values_mut().for_each(|v| walk(v, serial, masked)),
            _ => {}
        }
    }
    let unreadable = |e: serde_json::Error| Stop::BadInput(e.to_string());
    let schema = std::mem::take(&mut run.schema);
    let mut value = serde_json::to_value(&*run).map_err(unreadable)?;
    walk(&mut value, &serial, &mask_serial(&serial));
    *run = serde_json::from_value(value).map_err(unreadable)?;
    run.schema = schema;
    Ok(())
}
