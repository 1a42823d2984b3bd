//! `temp`: text, CSV and Prometheus.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
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
    /// It was left asleep, in this state as far as it is known.
    pub left_asleep: Option<PowerState>,
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
    if temperature
        .readings
        .iter()
        .any(|r| Some(r.source) == temperature.source && r.checksum_wrong)
    {
        line.push_str("  wrong checksum");
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
    if let Some(text) = range(limits.recorded_min_celsius, limits.recorded_max_celsius) {
        parts.push(format!("recorded {text}"));
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
        match (outcome.report, outcome.left_asleep) {
            (Some(report), _) => report.power_state,
            (None, state) => state.unwrap_or(PowerState::Unknown),
        }
        .word()
        .to_owned(),
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

/// Labels of one sample, in their order.
type Labels = Vec<(&'static str, String)>;

/// One metric with its samples in the order of the devices; the crate's own families keep theirs in hash order, which would
/// make the same run differ.
struct Metric {
    name: &'static str,
    help: &'static str,
    samples: Vec<(Labels, i64)>,
}

#[derive(Debug)]
struct Readings(Vec<Metric>);

impl std::fmt::Debug for Metric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl Collector for Readings {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        for metric in self.0.iter().filter(|m| !m.samples.is_empty()) {
            let mut family = encoder.encode_descriptor(metric.name, metric.help, None, MetricType::Gauge)?;
            for (labels, value) in &metric.samples {
                ConstGauge::new(*value).encode(family.encode_family(labels)?)?;
            }
        }
        Ok(())
    }
}

/// All devices' readings as one exposition.
///
/// # Errors
/// The encoder's, which only a failing writer causes.
pub fn prometheus(outcomes: &[Outcome<'_>]) -> Result<String, std::fmt::Error> {
    let metric = |name, help| Metric {
        name,
        help,
        samples: Vec::new(),
    };
    let mut temperature = metric("temperature_celsius", "Temperature of the drive");
    let mut limits = metric(
        "temperature_limit_celsius",
        "Limits and extremes that the drive itself tells",
    );
    let mut commands = metric("reading_commands", "Commands sent for this reading");
    let mut up = metric("device_up", "1 when the drive gave a reading");
    let mut asleep = metric("device_asleep", "1 when the drive was left asleep");
    for outcome in outcomes {
        let name: Labels = vec![("device", text::for_terminal(outcome.device))];
        up.samples
            .push((name.clone(), i64::from(outcome.report.is_some())));
        asleep
            .samples
            .push((name.clone(), i64::from(outcome.left_asleep.is_some())));
        let Some(report) = outcome.report else { continue };
        let shown = |s: &Option<String>| s.as_deref().map(text::for_terminal).unwrap_or_default();
        let mut device = name;
        device.push(("model", shown(&report.device.model)));
        device.push(("serial", shown(&report.device.serial)));
        let with = |label: &'static str, value: &str| {
            let mut labels = device.clone();
            labels.push((label, value.to_owned()));
            labels
        };
        for reading in report.temperature.readings.iter().filter(|r| r.plausible) {
            if let Some(celsius) = reading.celsius {
                temperature
                    .samples
                    .push((with("source", reading.source.word()), i64::from(celsius.0)));
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
            ("recorded_max", l.recorded_max_celsius),
            ("recorded_min", l.recorded_min_celsius),
        ];
        for (limit, celsius) in known {
            if let Some(celsius) = celsius {
                limits.samples.push((with("limit", limit), i64::from(celsius.0)));
            }
        }
        let sent = i64::try_from(report.cost.commands).unwrap_or(i64::MAX);
        commands.samples.push((device, sent));
    }
    let mut registry = Registry::with_prefix("drivethru");
    registry.register_collector(Box::new(Readings(vec![
        temperature,
        limits,
        commands,
        up,
        asleep,
    ])));
    let mut out = String::new();
    encode(&mut out, &registry)?;
    Ok(out)
}
