//! Columns known by their names, and numbers with units.

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Column {
    /// Time: seconds per unit, if the name tells.
    Time(Option<f64>),
    /// Rate: MB/s per unit, if the name tells.
    Rate(Option<f64>),
    /// Rates of one operation.
    WriteRate(Option<f64>),
    ReadRate(Option<f64>),
    Temperature(Option<Scale>),
    Op,
    /// Bytes since the start: bytes per unit.
    Total(f64),
    SmartMs,
    PowerW,
    Iops,
    LatencyUs(f64),
    OtherBytes,
}

/// A scale of temperature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scale {
    Celsius,
    Fahrenheit,
    Kelvin,
}

impl Scale {
    pub fn celsius(self, value: f64) -> f64 {
        match self {
            Self::Celsius => value,
            Self::Fahrenheit => (value - 32.0) / 1.8,
            Self::Kelvin => value - 273.15,
        }
    }
}

/// MB/s per unit of a rate's unit; the case of `b` tells bits from bytes where something else is said with it.
fn rate_unit(unit: &str) -> Option<f64> {
    let compact: String = unit
        .chars()
        .filter(|c| !c.is_whitespace())
        .collect::<String>()
        .replace("_per_", "/")
        .replace("per", "/")
        .replace("_s", "/s")
        .replace("sec", "s")
        .replace("second", "s");
    let lower = compact.to_lowercase();
    let bits = compact.contains("bit") || compact.ends_with("bps");
    let (scale, rest) = [
        ("gib", 1_073.741_824),
        ("mib", 1.048_576),
        ("kib", 0.001_024),
        ("gb", 1_000.0),
        ("mb", 1.0),
        ("kb", 0.001),
        ("bytes", 1e-6),
        ("byte", 1e-6),
        ("b", 1e-6),
    ]
    .into_iter()
    .find_map(|(name, scale)| lower.strip_prefix(name).map(|rest| (scale, rest)))?;
    // `MBps` is bytes, `Mbps` bits; `mbps` in small letters is what disk tools mean: bytes.
    let small = compact == lower && lower.starts_with("mb");
    let scale = if bits && !small || lower.contains("bit") {
        scale / 8.0
    } else {
        scale
    };
    let rest = rest
        .strip_prefix("its")
        .or_else(|| rest.strip_prefix("it"))
        .unwrap_or(rest);
    ["/s", "ps", "/", "s"].contains(&rest).then_some(scale)
}

fn time_unit(unit: &str) -> Option<f64> {
    Some(match unit.trim() {
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "ms" | "msec" | "msecs" | "millis" | "milliseconds" => 1e-3,
        "us" | "usec" | "µs" | "microseconds" => 1e-6,
        "ns" | "nsec" | "nanoseconds" => 1e-9,
        "min" | "minutes" => 60.0,
        "h" | "hours" => 3600.0,
        _ => return None,
    })
}

fn byte_unit(unit: &str) -> Option<f64> {
    Some(match unit.trim() {
        "b" | "byte" | "bytes" => 1.0,
        "kb" => 1e3,
        "kib" => 1024.0,
        "mb" => 1e6,
        "mib" => 1024.0 * 1024.0,
        "gb" => 1e9,
        "gib" => 1024.0 * 1024.0 * 1024.0,
        "sectors" | "lbas" => 512.0,
        _ => return None,
    })
}

fn scale(unit: &str) -> Option<Scale> {
    Some(
        match unit.trim().trim_start_matches(['°', '\u{fffd}', 'º']).trim() {
            "c" | "celsius" | "degc" | "deg c" => Scale::Celsius,
            "f" | "fahrenheit" | "degf" | "deg f" => Scale::Fahrenheit,
            "k" | "kelvin" => Scale::Kelvin,
            _ => return None,
        },
    )
}

/// The unit in brackets, and the name without it.
fn brackets(name: &str) -> (String, Option<String>) {
    for (open, close) in [('(', ')'), ('[', ']')] {
        if let Some((before, rest)) = name.split_once(open)
            && let Some((unit, after)) = rest.split_once(close)
        {
            return (
                format!("{} {}", before.trim(), after.trim()),
                Some(unit.trim().to_owned()),
            );
        }
    }
    (name.to_owned(), None)
}

/// What a column of this name holds.
pub(super) fn recognise(header: &str) -> Option<Column> {
    let (bare, unit) = brackets(header.trim());
    let name = bare.trim().to_lowercase().replace([' ', '-', '.'], "_");
    let name = name.trim_matches('_');
    let lower_unit = unit.as_deref().map(str::to_lowercase);
    let words: Vec<&str> = name.split(['_', '/']).filter(|w| !w.is_empty()).collect();
    let has = |w: &str| words.contains(&w);
    // A unit in the name's own letters: `Write MB/s`, `mb_s`, `MBps`.
    let own = bare.trim();
    let rate = unit.as_deref().and_then(rate_unit).or_else(|| {
        let tail = own.rsplit_once([' ', '_']).map_or(own, |(_, t)| t);
        let two = own
            .rmatch_indices(['_', ' '])
            .nth(1)
            .and_then(|(at, _)| own.get(at + 1..));
        rate_unit(own)
            .or_else(|| two.and_then(rate_unit))
            .or_else(|| rate_unit(tail).filter(|_| tail.len() > 1))
    });
    if let Some(scale) = name
        .strip_prefix("lat_p99_")
        .or_else(|| name.strip_prefix("p99_"))
        .and_then(time_unit)
    {
        return Some(Column::LatencyUs(scale * 1e6));
    }
    match name {
        "smart_ms" => return Some(Column::SmartMs),
        "temp_age_s" => return None,
        "other_bytes" => return Some(Column::OtherBytes),
        "iops" => return Some(Column::Iops),
        "power_w" | "power" | "watts" | "w" => return Some(Column::PowerW),
        "op" | "operation" | "direction" | "dir" | "rw" | "mode" | "type" | "phase" => {
            return Some(Column::Op);
        }
        _ => {}
    }
    let speaks_of_rate = ["rate", "speed", "throughput", "bandwidth", "bw"]
        .iter()
        .any(|w| has(w));
    if rate.is_some() || speaks_of_rate {
        let write = name.contains("write") || has("wr") || has("w");
        let read = name.contains("read") || has("rd") || has("r");
        return Some(match (write, read) {
            (true, false) => Column::WriteRate(rate),
            (false, true) => Column::ReadRate(rate),
            _ => Column::Rate(rate),
        });
    }
    if let Some(scale) = scale(name).filter(|_| name.chars().count() > 1) {
        return Some(Column::Temperature(Some(scale)));
    }
    if name.starts_with("temp")
        || name.contains("temperature")
        || name.contains("celsius")
        || name.ends_with("°c")
    {
        let tail = words.last().copied().unwrap_or_default();
        let by_word = lower_unit
            .as_deref()
            .and_then(scale)
            .or_else(|| if words.len() > 1 { scale(tail) } else { None });
        return Some(Column::Temperature(by_word));
    }
    if ["bytes", "cumulative", "total", "transferred", "written"]
        .iter()
        .any(|w| name.contains(w))
    {
        let unit = lower_unit
            .as_deref()
            .and_then(byte_unit)
            .or_else(|| words.iter().rev().find_map(|w| byte_unit(w)));
        return unit.map(Column::Total);
    }
    let time = [
        "t",
        "time",
        "elapsed",
        "timestamp",
        "date",
        "datetime",
        "clock",
        "runtime",
        "when",
    ];
    if words.iter().any(|w| time.contains(w)) {
        let tail = words.last().copied().filter(|_| words.len() > 1);
        let by_word = lower_unit
            .as_deref()
            .and_then(time_unit)
            .or_else(|| tail.and_then(time_unit));
        return Some(Column::Time(by_word));
    }
    time_unit(name).map(|scale| Column::Time(Some(scale)))
}

/// The number at the start of a cell, and what follows.
fn split(text: &str) -> (&str, &str) {
    let end = text
        .char_indices()
        .find(|(i, c)| {
            let exponent = matches!(c, 'e' | 'E')
                && text.get(i + 1..).is_some_and(|rest| {
                    rest.starts_with(|d: char| d.is_ascii_digit() || d == '-' || d == '+')
                });
            !(c.is_ascii_digit() || matches!(c, '.' | ',' | '-' | '+') || exponent)
        })
        .map_or(text.len(), |(i, _)| i);
    (text.get(..end).unwrap_or(text), text.get(end..).unwrap_or(""))
}

/// Digits with a decimal point and without groups. Groups count only where nothing else can be meant: `1.234` alone is no
/// number where the comma is the decimal mark, since it may be a thousand times as much.
fn plain(digits: &str, comma: bool) -> Option<String> {
    let (mark, group) = if comma { (',', '.') } else { ('.', ',') };
    if !digits.contains(group) {
        return Some(digits.replace(mark, "."));
    }
    let (whole, fraction) = match digits.split_once(mark) {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (digits, None),
    };
    let parts: Vec<&str> = whole.trim_start_matches(['-', '+']).split(group).collect();
    let grouped = parts.iter().enumerate().all(|(i, part)| {
        let length = if i == 0 { 1..=3 } else { 3..=3 };
        length.contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit())
    });
    let clear = fraction.is_some_and(|f| !f.contains(group)) || fraction.is_none() && parts.len() > 2;
    (grouped && clear).then(|| {
        let whole = whole.replace(group, "");
        fraction.map_or(whole.clone(), |f| format!("{whole}.{f}"))
    })
}

/// Whether a number's decimal mark is a comma, and whether it can be nothing else (`1,234` might be a thousand). Absent where
/// there is no mark.
pub(super) fn mark(cell: &str) -> Option<(bool, bool)> {
    let (digits, _) = split(cell.trim());
    let reads = |comma| plain(digits, comma).is_some_and(|d| d.parse::<f64>().is_ok());
    if !digits.contains(['.', ',']) {
        return None;
    }
    match (reads(false), reads(true)) {
        (true, false) | (false, true) => {
            let comma = reads(true);
            let tail = digits.rsplit(['.', ',']).next().unwrap_or_default();
            let several = digits.matches(['.', ',']).count() > 1;
            Some((comma, several || tail.len() != 3))
        }
        _ => None,
    }
}

/// A number with or without a unit behind it, and that unit. Absent where nothing was measured; `Err` where it is something
/// else.
pub(super) fn number(cell: &str, comma: bool) -> Result<Option<(f64, &str)>, ()> {
    let text = cell.trim();
    let missing = ["", "-", "n/a", "na", "nan", "null", "none", "--", "?"];
    if missing.contains(&text.to_lowercase().as_str()) {
        return Ok(None);
    }
    let (digits, unit) = split(text);
    let value: f64 = plain(digits, comma).ok_or(())?.parse().map_err(|_| ())?;
    Ok(Some((value, unit.trim())))
}

/// A rate with its unit; the column's unit where the cell has none.
pub(super) fn rate(cell: &str, comma: bool, column: Option<f64>) -> Result<Option<f64>, ()> {
    Ok(match number(cell, comma)? {
        None => None,
        Some((value, "")) => Some(value * column.unwrap_or(1.0)),
        Some((value, unit)) => Some(value * rate_unit(unit).ok_or(())?),
    })
}

/// A temperature, the same.
pub(super) fn temperature(cell: &str, comma: bool, column: Option<Scale>) -> Result<Option<f64>, ()> {
    Ok(match number(cell, comma)? {
        None => None,
        Some((value, "")) => Some(column.unwrap_or(Scale::Celsius).celsius(value)),
        Some((value, unit)) => Some(scale(&unit.to_lowercase()).ok_or(())?.celsius(value)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_known_by_their_units() {
        for (name, mb_s) in [
            ("mb_s", 1.0),
            ("MB/s", 1.0),
            ("MiB/s", 1.048_576),
            ("KiB/s", 0.001_024),
            ("kib_s", 0.001_024),
            ("bytes/s", 1e-6),
            ("B/s", 1e-6),
            ("MBps", 1.0),
            ("mbps", 1.0),
            ("Mbps", 0.125),
            ("bps", 1.25e-7),
            ("Mbit/s", 0.125),
            ("Speed [GB/s]", 1000.0),
            ("throughput (MiB/sec)", 1.048_576),
            ("rate_mb_s", 1.0),
            ("bytes_per_sec", 1e-6),
        ] {
            match recognise(name) {
                Some(Column::Rate(Some(unit))) => assert!((unit - mb_s).abs() < 1e-12, "{name}: {unit}"),
                other => panic!("{name}: {other:?}"),
            }
        }
        assert_eq!(recognise("bandwidth"), Some(Column::Rate(None)));
        assert_eq!(recognise("Write MB/s"), Some(Column::WriteRate(Some(1.0))));
        assert_eq!(recognise("read_mb_s"), Some(Column::ReadRate(Some(1.0))));
        assert_eq!(recognise("Read Rate [MB/s]"), Some(Column::ReadRate(Some(1.0))));
    }

    #[test]
    fn other_columns_are_known() {
        for (name, column) in [
            ("t_s", Column::Time(Some(1.0))),
            ("time", Column::Time(None)),
            ("Timestamp", Column::Time(None)),
            ("Time (ms)", Column::Time(Some(1e-3))),
            ("elapsed_ms", Column::Time(Some(1e-3))),
            ("seconds", Column::Time(Some(1.0))),
            ("ms", Column::Time(Some(1e-3))),
            ("Date", Column::Time(None)),
            ("temp_c", Column::Temperature(Some(Scale::Celsius))),
            ("Temperature", Column::Temperature(None)),
            ("Temp [\u{fffd}C]", Column::Temperature(Some(Scale::Celsius))),
            (
                "Drive Temperature (°F)",
                Column::Temperature(Some(Scale::Fahrenheit)),
            ),
            ("°C", Column::Temperature(Some(Scale::Celsius))),
            ("temp_k", Column::Temperature(Some(Scale::Kelvin))),
            ("op", Column::Op),
            ("Direction", Column::Op),
            ("cumulative_bytes", Column::Total(1.0)),
            ("Total Written (GB)", Column::Total(1e9)),
            ("smart_ms", Column::SmartMs),
            ("power_w", Column::PowerW),
            ("iops", Column::Iops),
            ("lat_p99_us", Column::LatencyUs(1.0)),
            ("other_bytes", Column::OtherBytes),
        ] {
            assert_eq!(recognise(name), Some(column), "{name}");
        }
        for name in ["", "temp_age_s", "comment", "x", "device"] {
            assert_eq!(recognise(name), None, "{name}");
        }
    }

    #[test]
    fn decimal_marks_are_seen() {
        for (cell, seen) in [
            ("12", None),
            ("01.02.2026 10:00", None),
            ("10:00:01.5", None),
            ("1.5", Some((false, true))),
            ("1.234", Some((false, false))),
            ("1,234", Some((true, false))),
            ("100,5 MB/s", Some((true, true))),
            ("1.234,5", Some((true, true))),
            ("1.234.567", Some((true, true))),
            ("1,234.5", Some((false, true))),
        ] {
            assert_eq!(mark(cell), seen, "{cell}");
        }
    }

    #[test]
    fn numbers_are_read_as_people_write_them() {
        assert_eq!(number("12.5", false), Ok(Some((12.5, ""))));
        assert_eq!(number("1.234,5", true), Ok(Some((1234.5, ""))));
        assert_eq!(number("-1.234.567", true), Ok(Some((-1_234_567.0, ""))));
        assert_eq!(number("1,234.5", false), Ok(Some((1234.5, ""))));
        for (cell, comma) in [
            ("1.234", true),
            ("100.25", true),
            ("1,234", false),
            ("1.23,4", true),
        ] {
            assert_eq!(number(cell, comma), Err(()), "{cell}");
        }
        assert_eq!(number("1e3", false), Ok(Some((1000.0, ""))));
        assert_eq!(number("N/A", false), Ok(None));
        assert_eq!(number("12 MB/s", false), Ok(Some((12.0, "MB/s"))));
        assert_eq!(number("abc", false), Err(()));
        assert_eq!(rate("1.5 GB/s", false, Some(1.0)), Ok(Some(1500.0)));
        assert_eq!(rate("5 parsecs", false, None), Err(()));
        assert_eq!(temperature("300 K", false, None).map(|t| t.is_some()), Ok(true));
    }
}
