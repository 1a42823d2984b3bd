//! The series as fio writes it with `--write_bw_log --log_avg_msec`: `milliseconds, KiB/s, direction, block size, offset`,
//! direction 0 for reads and 1 for writes (fio's manual, "Log file formats").

use super::span;
use crate::bench::series::{Op, Sample};

/// The log. Idle samples have no line, as nothing completes in them; what rounding to whole KiB/s loses is carried into the
/// next line of the same direction.
pub fn bw_log(samples: &[Sample], block_bytes: u64) -> String {
    let samples = span::ordered(samples);
    let lengths = span::lengths(&samples);
    let mut carried_kib = [0.0; 2];
    let mut out = String::new();
    for (sample, length) in samples.iter().zip(lengths) {
        let direction = match sample.op {
            Op::Read => 0,
            Op::Write => 1,
            Op::Idle => continue,
        };
        if length <= 0.0 {
            continue;
        }
        let exact_kib = sample.mb_s * 1e6 / 1024.0 * length + carried_kib[direction];
        let rate = (exact_kib / length).round().max(0.0);
        carried_kib[direction] = exact_kib - rate * length;
        out.push_str(&format!(
            "{}, {}, {direction}, {block_bytes}, 0\n",
            (sample.t_s * 1000.0).round().max(0.0) as u64,
            rate as u64
        ));
    }
    out
}
