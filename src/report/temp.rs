//! `temp`: text, CSV and Prometheus.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::{Style, Tone};
use crate::drive::power::PowerState;
use crate::drive::temperature::{Limits, TempReport};
use crate::text;
use crate::units::Celsius;

/// A reading, or why there is none.
pub struct Outcome<'a> {
    /// The name it was opened by.
    pub device: &'a str,
    /// The reading.
    pub report: Option<&'a TempReport>,
    /// Why there is none.
    pub error: Option<String>,
    /// It was left asleep.
    pub asleep: bool,
    /// When, RFC 3339.
    pub time: String,
}

/// One line for people.
pub fn line(report: &TempReport, style: Style) -> String {
    let temperature = &report.temperature;
    let (Some(celsius), Some(source)) = (temperature.celsius, temperature.source) else {
        return format!("{}: no temperature\n", text::for_terminal(&report.device.name));
    };
    let tone = match temperature.limits.max_operating_celsius {
        Some(limit) if celsius > limit => Tone::Bad,
        Some(limit) if celsius.0 >= limit.0 - 5 => Tone::Warn,
        _ => Tone::Good,
    };
    let value = style.paint(tone, &format!("{} °C", celsius.0));
    let mut line = format!(
        "{}: {value} ({})",
        text::for_terminal(&report.device.name),
        source.word()
    );
    if let Some(model) = &report.device.model {
        line.push_str(&format!("  {}", text::for_terminal(model)));
    }
    let limits = limits_text(&temperature.limits);
    if !limits.is_empty() {
        line.push_str(&style.paint(Tone::Faint, &format!("  [{limits}]")));
    }
    if temperature.sources_disagree {
        line.push_str("  sources disagree");
    }
    if report.device.simulated {
        line.push_str("  [simulated]");
    }
    line.push('\n');
    line
}

/// The drive's own limits and extremes in one line.
pub fn limits_text(limits: &Limits) -> String {
    let range = |low: Option<Celsius>, high: Option<Celsius>| match (low, high) {
        (Some(low), Some(high)) => Some(format!("{}..{} °C", low.0, high.0)),
        (None, Some(high)) => Some(format!("up to {} °C", high.0)),
        _ => None,
    };
    let mut parts = Vec::new();
    if let Some(text) = range(limits.min_operating_celsius, limits.max_operating_celsius) {
        parts.push(format!("limit {text}"));
    }
    if let Some(text) = range(limits.power_cycle_min_celsius, limits.power_cycle_max_celsius) {
        parts.push(format!("since power-on {text}"));
    }
    if let Some(text) = range(limits.lifetime_min_celsius, limits.lifetime_max_celsius) {
        parts.push(format!("lifetime {text}"));
    }
    parts.join(", ")
}

/// Header of the CSV form.
pub const CSV_HEADER: [&str; 10] = [
    "time",
    "device",
    "model",
    "serial",
    "temp_celsius",
    "source",
    "power_state",
    "commands",
    "elapsed_us",
    "error",
];

/// One CSV row; unknown is empty.
pub fn csv_row(outcome: &Outcome<'_>) -> [String; 10] {
    let device = outcome.report.map(|r| &r.device);
    let field = |value: Option<&String>| value.map(|v| text::for_csv_cell(v)).unwrap_or_default();
    let temperature = outcome.report.map(|r| &r.temperature);
    [
        outcome.time.clone(),
        text::for_csv_cell(outcome.device),
        field(device.and_then(|d| d.model.as_ref())),
        field(device.and_then(|d| d.serial.as_ref())),
        temperature
            .and_then(|t| t.celsius)
            .map(|c| c.0.to_string())
            .unwrap_or_default(),
        temperature
            .and_then(|t| t.source)
            .map(|s| s.word().to_owned())
            .unwrap_or_default(),
        match (outcome.report, outcome.asleep) {
            (Some(report), _) => power_word(report.power_state).to_owned(),
            (None, true) => "standby".to_owned(),
            (None, false) => "unknown".to_owned(),
        },
        outcome
            .report
            .map(|r| r.cost.commands.to_string())
            .unwrap_or_default(),
        outcome
            .report
            .map(|r| r.cost.elapsed_us.to_string())
            .unwrap_or_default(),
        outcome
            .error
            .as_deref()
            .map(text::for_csv_cell)
            .unwrap_or_default(),
    ]
}

/// The word for a power state in every output.
pub fn power_word(state: PowerState) -> &'static str {
    match state {
        PowerState::Active => "active",
        PowerState::Idle => "idle",
        PowerState::Standby => "standby",
        PowerState::Unknown => "unknown",
    }
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct DeviceLabels {
    device: String,
    model: String,
    serial: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct SourceLabels {
    device: String,
    model: String,
    serial: String,
    source: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct LimitLabels {
    device: String,
    model: String,
    serial: String,
    limit: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct NameLabels {
    device: String,
}

/// All devices' readings as one exposition.
///
/// # Errors
/// The encoder's, which only a failing writer causes.
pub fn prometheus(outcomes: &[Outcome<'_>]) -> Result<String, std::fmt::Error> {
    let temperature = Family::<SourceLabels, Gauge>::default();
    let limits = Family::<LimitLabels, Gauge>::default();
    let commands = Family::<DeviceLabels, Gauge>::default();
    let up = Family::<NameLabels, Gauge>::default();
    let asleep = Family::<NameLabels, Gauge>::default();
    let mut registry = Registry::with_prefix("drivethru");
    registry.register(
        "temperature_celsius",
        "Temperature of the drive",
        temperature.clone(),
    );
    registry.register(
        "temperature_limit_celsius",
        "Limits and extremes that the drive itself tells",
        limits.clone(),
    );
    registry.register(
        "reading_commands",
        "Commands sent for this reading",
        commands.clone(),
    );
    registry.register("device_up", "1 when the drive gave a reading", up.clone());
    registry.register(
        "device_asleep",
        "1 when the drive was left asleep",
        asleep.clone(),
    );
    for outcome in outcomes {
        let name = NameLabels {
            device: text::for_terminal(outcome.device),
        };
        up.get_or_create(&name).set(i64::from(outcome.report.is_some()));
        asleep.get_or_create(&name).set(i64::from(outcome.asleep));
        let Some(report) = outcome.report else { continue };
        let shown = |s: &Option<String>| s.as_deref().map(text::for_terminal).unwrap_or_default();
        let (device, model, serial) = (
            name.device.clone(),
            shown(&report.device.model),
            shown(&report.device.serial),
        );
        for reading in report.temperature.readings.iter().filter(|r| r.plausible) {
            let labels = SourceLabels {
                device: device.clone(),
                model: model.clone(),
                serial: serial.clone(),
                source: reading.source.word().to_owned(),
            };
            if let Some(celsius) = reading.celsius {
                temperature.get_or_create(&labels).set(i64::from(celsius.0));
            }
        }
        let l = &report.temperature.limits;
        let known = [
            ("max_operating", l.max_operating_celsius),
            ("min_operating", l.min_operating_celsius),
            ("power_cycle_max", l.power_cycle_max_celsius),
            ("power_cycle_min", l.power_cycle_min_celsius),
            ("lifetime_max", l.lifetime_max_celsius),
            ("lifetime_min", l.lifetime_min_celsius),
        ];
        for (limit, celsius) in known {
            let Some(celsius) = celsius else { continue };
            let labels = LimitLabels {
                device: device.clone(),
                model: model.clone(),
                serial: serial.clone(),
                limit: limit.to_owned(),
            };
            limits.get_or_create(&labels).set(i64::from(celsius.0));
        }
        let sent = i64::try_from(report.cost.commands).unwrap_or(i64::MAX);
        commands
            .get_or_create(&DeviceLabels {
                device,
                model,
                serial,
            })
            .set(sent);
    }
    let mut out = String::new();
    encode(&mut out, &registry)?;
    Ok(with_samples_sorted(&out))
}

/// The encoder writes the samples of a family in the order of a hash table, which differs from run to run.
fn with_samples_sorted(exposition: &str) -> String {
    let mut lines: Vec<&str> = exposition.lines().collect();
    for family in lines.chunk_by_mut(|a, b| a.starts_with('#') == b.starts_with('#')) {
        if family.first().is_some_and(|line| !line.starts_with('#')) {
            family.sort_unstable();
        }
    }
    lines.into_iter().map(|line| format!("{line}\n")).collect()
}
