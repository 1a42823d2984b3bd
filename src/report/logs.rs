//! The logs of `smart --all`: text.

use super::{key_values, table};
use crate::ata::devstat::DeviceStatistics;
use crate::ata::gplog::{ErrorLog, LogDirectory, SelfTestLog};
use crate::ata::sct::{SctStatus, TempHistory};
use crate::drive::health::Logs;

/// Entries of the history that fit one line of a terminal.
const CURVE_SAMPLES: usize = 72;

/// All logs that were read.
pub fn render(logs: &Logs) -> String {
    let mut out = String::new();
    out.extend(logs.directory.as_ref().map(directory));
    out.extend(logs.errors.as_ref().map(errors));
    out.extend(logs.self_tests.as_ref().map(self_tests));
    out.extend(logs.statistics.as_ref().map(statistics));
    out.extend(logs.sct_status.as_ref().map(sct));
    out.extend(logs.temperature_history.as_ref().map(history));
    out
}

fn directory(log: &LogDirectory) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    // Neighbours of the same kind share a row: drives have dozens of logs for the host's own use.
    for group in log.logs.chunk_by(|a, b| {
        a.name == b.name && a.pages == b.pages && a.address.checked_add(1) == Some(b.address)
    }) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            continue;
        };
        let address = match group.len() {
            1 => format!("{:02x}h", first.address),
            _ => format!("{:02x}h-{:02x}h", first.address, last.address),
        };
        rows.push(vec![
            address,
            first.pages.to_string(),
            first.name.unwrap_or_default().to_owned(),
        ]);
    }
    format!("\nLogs\n{}", table(&["Log", "Pages", "What it holds"], rows))
}

fn errors(log: &ErrorLog) -> String {
    if log.count == 0 && log.entries.is_empty() {
        return "\nError log\n  no errors\n".to_owned();
    }
    let rows = log
        .entries
        .iter()
        .map(|entry| {
            let command = entry
                .commands
                .last()
                .map(|c| format!("{:02x}h", c.command))
                .unwrap_or_default();
            vec![
                format!("{} h", entry.power_on_hours),
                command,
                format!("{:02x}h", entry.status),
                format!("{:02x}h", entry.error),
                entry.lba.to_string(),
            ]
        })
        .collect();
    let header = ["Power-on", "Command", "Status", "Error", "LBA"];
    format!("\nError log: {} in all\n{}", log.count, table(&header, rows))
}

fn self_tests(log: &SelfTestLog) -> String {
    if log.entries.is_empty() {
        return "\nSelf-test log\n  no test was ever run\n".to_owned();
    }
    let rows = log
        .entries
        .iter()
        .map(|entry| {
            vec![
                entry
                    .name
                    .map_or_else(|| format!("{:02x}h", entry.test), str::to_owned),
                entry.status.text().to_owned(),
                format!("{} h", entry.power_on_hours),
                entry.lba.map(|lba| lba.to_string()).unwrap_or_default(),
            ]
        })
        .collect();
    format!(
        "\nSelf-test log\n{}",
        table(&["Test", "Result", "Power-on", "First bad LBA"], rows)
    )
}

fn statistics(log: &DeviceStatistics) -> String {
    let rows = log
        .pages
        .iter()
        .flat_map(|page| page.table.iter().map(move |row| (page, row)))
        .map(|(page, row)| {
            vec![
                format!("{:02x}h", page.number),
                row.offset_bytes.to_string(),
                row.name.unwrap_or("not named by the standard").to_owned(),
                row.value.map_or_else(|| "-".to_owned(), |v| v.to_string()),
            ]
        })
        .collect();
    format!(
        "\nDevice statistics\n{}",
        table(&["Page", "Offset", "Statistic", "Value"], rows)
    )
}

fn sct(status: &SctStatus) -> String {
    let temperature = &status.temperature;
    format!(
        "\nSCT status\n{}",
        key_values(&[
            ("format", Some(status.format_version.to_string())),
            (
                "state",
                Some(
                    status
                        .state
                        .name
                        .map_or_else(|| status.state.code.to_string(), str::to_owned)
                )
            ),
            (
                "over limit",
                Some(format!("{} times", temperature.over_limit_count))
            ),
            (
                "under limit",
                Some(format!("{} times", temperature.under_limit_count))
            ),
        ])
    )
}

fn history(history: &TempHistory) -> String {
    let known: Vec<i16> = history.samples.iter().flatten().map(|c| c.0).collect();
    let (Some(low), Some(high)) = (known.iter().min(), known.iter().max()) else {
        return "\nTemperature history\n  no samples\n".to_owned();
    };
    let minutes = usize::from(history.interval_minutes);
    let newest = history.samples.len().saturating_sub(CURVE_SAMPLES);
    let shown = history.samples.get(newest..).unwrap_or_default();
    let curve: String = shown
        .iter()
        .map(|sample| sample.map_or(' ', |c| bar(c.0, *low, *high)))
        .collect();
    format!(
        "\nTemperature history: a sample each {minutes} min, {} in all, {low}..{high} °C\n  {curve}\n  the last {} min, newest at the right\n",
        known.len(),
        shown.len() * minutes
    )
}

/// One of eight bars for `value` between `low` and `high`.
fn bar(value: i16, low: i16, high: i16) -> char {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let span = i32::from(high) - i32::from(low);
    let step = match span {
        0 => 3,
        _ => (i32::from(value) - i32::from(low)) * 7 / span,
    };
    usize::try_from(step)
        .ok()
        .and_then(|i| BARS.get(i))
        .copied()
        .unwrap_or(' ')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Celsius;

    #[test]
    fn bars_span_the_range() {
        assert_eq!(
            (bar(20, 20, 60), bar(60, 20, 60), bar(40, 20, 60)),
            ('▁', '█', '▄')
        );
        assert_eq!(bar(30, 30, 30), '▄', "a flat line");
        assert_eq!(bar(i16::MAX, i16::MIN, i16::MAX), '█', "no overflow");
    }

    #[test]
    fn a_history_without_samples_says_so() {
        let mut empty = TempHistory {
            format_version: 2,
            sampling_minutes: 1,
            interval_minutes: 10,
            op_limit_max: None,
            limit_max: None,
            op_limit_min: None,
            limit_min: None,
            size: 128,
            index: 0,
            samples: vec![None; 128],
            ring: vec![None; 128],
        };
        assert!(history(&empty).contains("no samples"));
        empty.samples = vec![None, Some(Celsius(-5)), Some(Celsius(30))];
        assert!(history(&empty).contains("-5..30 °C"));
        assert!(history(&empty).contains(" ▁█\n"));
    }
}
