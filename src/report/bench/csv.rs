//! The series as CSV: `t_s,mb_s,cumulative_bytes,temp_c,op`, then what was measured beside; unknown is empty. Numbers are
//! written so that reading them gives the same ones.

use crate::bench::series::Sample;

const FIXED: [&str; 5] = ["t_s", "mb_s", "cumulative_bytes", "temp_c", "op"];
const OPTIONAL: [&str; 5] = ["smart_ms", "power_w", "iops", "lat_p99_us", "other_bytes"];

fn optional(sample: &Sample) -> [Option<String>; 5] {
    let number = |value: Option<f64>| value.map(|v| v.to_string());
    [
        number(sample.smart_ms),
        number(sample.power_w),
        number(sample.iops),
        number(sample.lat_p99_us),
        sample.other_bytes.map(|v| v.to_string()),
    ]
}

/// The series; an optional column is there if one sample has it.
pub fn write(samples: &[Sample]) -> String {
    let used: Vec<usize> = (0..OPTIONAL.len())
        .filter(|i| samples.iter().any(|s| optional(s)[*i].is_some()))
        .collect();
    let cell = |value: Option<f64>| value.map(|v| v.to_string()).unwrap_or_default();
    let mut out = FIXED.join(",");
    for i in &used {
        out.push(',');
        out.push_str(OPTIONAL[*i]);
    }
    out.push('\n');
    for sample in samples {
        out.push_str(&format!(
            "{},{},{},{},{}",
            sample.t_s,
            sample.mb_s,
            sample.cumulative_bytes,
            cell(sample.temp_c),
            sample.op.word()
        ));
        for i in &used {
            out.push(',');
            out.push_str(optional(sample)[*i].as_deref().unwrap_or_default());
        }
        out.push('\n');
    }
    out
}
