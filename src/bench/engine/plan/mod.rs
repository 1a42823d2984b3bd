//! From a workload's name and options to the stages of a run. Pure: nothing here touches a device.

mod options;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

pub use options::{Amount, Content, Options, WORKLOADS, Workload};

use super::sets::{File, Set, das_sets};
use crate::bench::series::Op;

/// Where requests of a stage go.
#[derive(Debug, Clone, PartialEq)]
pub enum Pattern {
    /// Nothing is moved.
    Idle,
    /// One behind the other from the start of the medium, and again from there at the end of `span_bytes`.
    Sequential {
        /// Length of the region.
        span_bytes: u64,
    },
    /// Anywhere in the first `span_bytes`, aligned to the block.
    Random {
        /// Length of the region.
        span_bytes: u64,
        /// How many of a hundred are reads.
        read_percent: u8,
    },
    /// These files, one behind the other.
    Files(Arc<[Copied]>),
}

/// A file that is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copied {
    /// Its size.
    pub bytes: u64,
    /// The name of its content, another one in each pass.
    pub content: u64,
}

/// A row that a stage gives a value to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowKey {
    /// The row's name in the report.
    pub row: String,
    /// Its figure's name.
    pub figure: String,
}

/// A stretch of the run with one pattern.
#[derive(Debug, Clone, PartialEq)]
pub struct Stage {
    /// Its name: `photos, pass 1, write`.
    pub name: String,
    /// What it moves; the greater part of it in a mix.
    pub op: Op,
    /// Where.
    pub pattern: Pattern,
    /// Requests in flight.
    pub depth: u32,
    /// Bytes per request.
    pub block_bytes: u64,
    /// It ends after so many bytes.
    pub bytes: Option<u64>,
    /// It ends after this time.
    pub time: Option<Duration>,
    /// What completes before counts for the series only.
    pub unscored: Duration,
    /// A flush at the end, inside its time.
    pub flush: bool,
    /// What its buffers hold.
    pub content: Content,
    /// The row that it is a run of.
    pub row: Option<RowKey>,
}

impl Stage {
    fn idle(name: &str, time: Duration) -> Self {
        Self {
            name: name.to_owned(),
            op: Op::Idle,
            pattern: Pattern::Idle,
            depth: 0,
            block_bytes: 0,
            bytes: None,
            time: Some(time),
            unscored: Duration::ZERO,
            flush: false,
            content: Content::Random,
            row: None,
        }
    }

    fn moving(name: String, op: Op, pattern: Pattern, depth: u32, block_bytes: u64) -> Self {
        Self {
            name,
            op,
            pattern,
            depth,
            block_bytes,
            time: None,
            ..Self::idle("", Duration::ZERO)
        }
    }

    /// Whether it copies files.
    pub fn copies_files(&self) -> bool {
        matches!(self.pattern, Pattern::Files(_))
    }
}

/// What a run will do.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// In the order of time.
    pub stages: Vec<Stage>,
    /// Files, for workloads that copy some.
    pub sets: Vec<Set>,
    /// What was chosen, for the report.
    pub chosen: BTreeMap<String, Value>,
    /// What is to be said beside it.
    pub notes: Vec<String>,
}

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const GIB: u64 = 1024 * MIB;

/// How often each folder of the suite is written and read back.
pub const PASSES: u32 = 3;

/// Lays out a workload on a medium of `capacity_bytes`.
///
/// # Errors
/// Options that do not go together, or a medium that is too small, in words.
pub fn plan(options: &Options, capacity_bytes: u64) -> Result<Plan, String> {
    let sequential = matches!(options.workload, Workload::Seq | Workload::SeqConsistency);
    if !sequential && (options.amount.is_some() || options.op.is_some()) {
        return Err(format!(
            "{} has its own length and operations: --bytes, --for, --fill and --op are for seq and seq-consistency",
            options.workload.word()
        ));
    }
    let mut plan = Plan {
        stages: Vec::new(),
        sets: Vec::new(),
        chosen: BTreeMap::from([("seed".to_owned(), json!(options.seed))]),
        notes: Vec::new(),
    };
    match options.workload {
        Workload::Seq => plan.sequential(options, capacity_bytes, Amount::For(Duration::from_secs(60)))?,
        Workload::SeqConsistency => {
            plan.sequential(options, capacity_bytes, Amount::FillPercent(90.0))?;
        }
        Workload::Das => plan.das(options),
        Workload::Mix => plan.mix(options),
        Workload::Cdm3 => plan.rows(
            options,
            CDM3,
            &Runs {
                region_bytes: 1000 * MIB,
                runs: 9,
                time_small: Duration::from_secs(5),
                timed: false,
            },
        ),
        Workload::Cdm8 | Workload::Cdm8Nvme => plan.rows(
            options,
            if options.workload == Workload::Cdm8 {
                CDM8
            } else {
                CDM8_NVME
            },
            &Runs {
                region_bytes: GIB,
                runs: 5,
                time_small: Duration::from_secs(5),
                timed: true,
            },
        ),
        Workload::Compressibility => plan.compressibility(),
    }
    let needed = plan
        .stages
        .iter()
        .map(Stage::span_bytes)
        .max()
        .unwrap_or_default();
    if needed > capacity_bytes {
        return Err(format!(
            "{} needs {} GB, and the medium has {}",
            options.workload.word(),
            needed / 1_000_000_000,
            capacity_bytes / 1_000_000_000
        ));
    }
    Ok(plan)
}

/// A row of a synthetic benchmark: label, name of its figure, block, random or not, depth.
type RowSpec = (&'static str, &'static str, u64, bool, u32);

const CDM3: &[RowSpec] = &[
    ("Sequential", "seq", MIB, false, 1),
    ("Random 512KB", "512k", 512 * KIB, true, 1),
    ("Random 4KB (QD=1)", "4k_qd1", 4 * KIB, true, 1),
    ("Random 4KB (QD=32)", "4k_qd32", 4 * KIB, true, 32),
];

const CDM8: &[RowSpec] = &[
    ("SEQ1M Q8T1", "seq1m_q8t1", MIB, false, 8),
    ("SEQ1M Q1T1", "seq1m_q1t1", MIB, false, 1),
    ("RND4K Q32T1", "rnd4k_q32t1", 4 * KIB, true, 32),
    ("RND4K Q1T1", "rnd4k_q1t1", 4 * KIB, true, 1),
];

const CDM8_NVME: &[RowSpec] = &[
    ("SEQ1M Q8T1", "seq1m_q8t1", MIB, false, 8),
    ("SEQ128K Q32T1", "seq128k_q32t1", 128 * KIB, false, 32),
    ("RND4K Q32T16", "rnd4k_q32t16", 4 * KIB, true, 512),
    ("RND4K Q1T1", "rnd4k_q1t1", 4 * KIB, true, 1),
];

/// How often and how long rows are run.
struct Runs {
    region_bytes: u64,
    runs: u32,
    /// Longest run of small random requests.
    time_small: Duration,
    /// All runs last exactly so long, and one goes before that does not count.
    timed: bool,
}

impl Stage {
    /// The part of the medium that it reaches.
    fn span_bytes(&self) -> u64 {
        match &self.pattern {
            Pattern::Idle => 0,
            Pattern::Sequential { span_bytes } | Pattern::Random { span_bytes, .. } => *span_bytes,
            Pattern::Files(files) => files.iter().map(|f| f.bytes.next_multiple_of(4 * KIB)).sum(),
        }
    }
}

impl Plan {
    fn choose(&mut self, name: &str, value: Value) {
        self.chosen.insert(name.to_owned(), value);
    }

    fn sequential(&mut self, options: &Options, capacity_bytes: u64, usual: Amount) -> Result<(), String> {
        const BLOCK: u64 = 128 * KIB;
        let op = options.op.unwrap_or(Op::Write);
        if op == Op::Idle {
            return Err("a sequential workload reads or writes".to_owned());
        }
        let span_bytes = capacity_bytes / BLOCK * BLOCK;
        if span_bytes == 0 {
            return Err(format!(
                "{} needs a medium of at least {BLOCK} bytes, and this one has {capacity_bytes}",
                options.workload.word()
            ));
        }
        let mut stage = Stage::moving(
            format!("sequential {}", op.word()),
            op,
            Pattern::Sequential { span_bytes },
            32,
            BLOCK,
        );
        stage.flush = op == Op::Write;
        stage.content = options.content;
        match options.amount.unwrap_or(usual) {
            Amount::Bytes(bytes) => stage.bytes = Some(bytes),
            Amount::For(time) => {
                stage.time = Some(time);
                self.choose("for_s", json!(time.as_secs_f64()));
            }
            Amount::FillPercent(percent) if percent > 0.0 && percent <= 100.0 => {
                let bytes = (capacity_bytes as f64 * percent / 100.0) as u64;
                stage.bytes = Some((bytes / BLOCK * BLOCK).max(BLOCK));
                self.choose("fill_pct", json!(percent));
            }
            Amount::FillPercent(_) => return Err("--fill takes more than 0 and at most 100 %".to_owned()),
        }
        if stage.bytes == Some(0) {
            return Err("--bytes takes at least 1".to_owned());
        }
        if let Some(bytes) = stage.bytes {
            self.choose("bytes", json!(bytes));
        }
        self.choose("op", json!(op.word()));
        self.stages.push(stage);
        Ok(())
    }

    fn das(&mut self, options: &Options) {
        const GAPS_S: [u64; 2] = [40, 27];
        self.sets = das_sets(options.seed);
        let mut gaps = GAPS_S
            .into_iter()
            .filter(|_| !options.no_gap)
            .map(Duration::from_secs);
        let last = self.sets.len();
        for (number, set) in self.sets.iter().enumerate() {
            for pass in 1..=PASSES {
                let copied = |f: &File| Copied {
                    bytes: f.bytes,
                    content: f.content(pass),
                };
                let files: Arc<[Copied]> = set.files.iter().map(copied).collect();
                for op in [Op::Write, Op::Read] {
                    let name = format!("{}, pass {pass}, {}", set.name, op.word());
                    let mut stage = Stage::moving(name, op, Pattern::Files(Arc::clone(&files)), 1, MIB);
                    stage.flush = op == Op::Write;
                    stage.content = options.content;
                    self.stages.push(stage);
                }
            }
            if let Some(gap) = gaps.next().filter(|_| number + 1 < last) {
                self.stages.push(Stage::idle("the next set is loaded", gap));
            }
        }
        let sets: Vec<Value> = self
            .sets
            .iter()
            .map(|s| json!({"name": s.name, "bytes": s.bytes(), "files": s.files.len(), "folders": s.folders()}))
            .collect();
        self.choose("sets", json!(sets));
        self.choose("passes", json!(PASSES));
        self.choose("gaps_s", if options.no_gap { json!([]) } else { json!(GAPS_S) });
    }

    fn mix(&mut self, options: &Options) {
        const READ_PERCENT: u8 = 70;
        for depth in [1, 4, 15, 32, 60] {
            let name = format!("4k {READ_PERCENT}/{}, depth {depth}", 100 - READ_PERCENT);
            let pattern = Pattern::Random {
                span_bytes: GIB,
                read_percent: READ_PERCENT,
            };
            let mut stage = Stage::moving(name.clone(), Op::Read, pattern, depth, 4 * KIB);
            stage.time = Some(Duration::from_secs(60));
            stage.unscored = Duration::from_secs(5);
            stage.content = options.content;
            stage.row = Some(RowKey {
                row: name,
                figure: format!("rnd_mix_4k_qd{depth}"),
            });
            self.stages.push(stage);
        }
        self.choose("read_pct", json!(READ_PERCENT));
        self.choose("span_bytes", json!(GIB));
    }

    fn rows(&mut self, options: &Options, specs: &[RowSpec], how: &Runs) {
        // The old program alternates, the new one reads first and writes then.
        let pairs: Vec<(&RowSpec, Op)> = if how.timed {
            [Op::Read, Op::Write]
                .into_iter()
                .flat_map(|op| specs.iter().map(move |s| (s, op)))
                .collect()
        } else {
            specs
                .iter()
                .flat_map(|s| [(s, Op::Read), (s, Op::Write)])
                .collect()
        };
        for (number, ((label, key, block, random, depth), op)) in pairs.into_iter().enumerate() {
            if how.timed && number > 0 {
                self.stages
                    .push(Stage::idle("between rows", Duration::from_secs(5)));
            }
            let row = format!("{label}, {}", op.word());
            let figure = match (*random && !how.timed, op) {
                (true, Op::Read) => format!("rnd_read_{key}"),
                (true, _) => format!("rnd_write_{key}"),
                (false, op) => format!("{key}_{}", op.word()),
            };
            for run in 0..how.runs + u32::from(how.timed) {
                // With a time of their own, the first run is for warming up.
                let warm_up = how.timed && run == 0;
                let number = if how.timed { run } else { run + 1 };
                let name = if warm_up {
                    format!("{row}, warm-up")
                } else {
                    format!("{row}, run {number}")
                };
                let span_bytes = how.region_bytes;
                let pattern = if *random {
                    Pattern::Random {
                        span_bytes,
                        read_percent: if op == Op::Read { 100 } else { 0 },
                    }
                } else {
                    Pattern::Sequential { span_bytes }
                };
                let mut stage = Stage::moving(name, op, pattern, *depth, *block);
                stage.content = options.content;
                if how.timed {
                    stage.time = Some(how.time_small);
                } else {
                    stage.bytes = Some(span_bytes);
                    stage.time = Some(how.time_small).filter(|_| *block <= 4 * KIB);
                }
                if warm_up {
                    stage.unscored = Duration::MAX;
                }
                stage.row = Some(RowKey {
                    row: row.clone(),
                    figure: figure.clone(),
                });
                self.stages.push(stage);
            }
        }
        self.choose("region_bytes", json!(how.region_bytes));
        self.choose("runs", json!(how.runs));
        self.notes.push("a row is the best of its runs".to_owned());
    }

    fn compressibility(&mut self) {
        let contents = [Content::Random, Content::Zero, Content::Mix(50), Content::Random];
        for (number, content) in contents.into_iter().enumerate() {
            if number > 0 {
                self.stages
                    .push(Stage::idle("between writes", Duration::from_secs(30)));
            }
            let name = format!("write of {content}");
            let mut stage = Stage::moving(
                name.clone(),
                Op::Write,
                Pattern::Sequential { span_bytes: 2 * GIB },
                32,
                128 * KIB,
            );
            stage.bytes = Some(2 * GIB);
            stage.flush = true;
            stage.content = content;
            let which = match content {
                Content::Zero => "write_zero",
                Content::Mix(_) => "write_mix50",
                _ if number == 0 => "write_random_first",
                _ => "write_random_last",
            };
            stage.row = Some(RowKey {
                row: if number + 1 == contents.len() {
                    format!("{name}, again")
                } else {
                    name
                },
                figure: which.to_owned(),
            });
            self.stages.push(stage);
        }
    }

    /// Lets the device rest at the end, so that a meter sees its power at rest.
    pub fn rest_at_the_end(&mut self) {
        if self.stages.iter().all(|s| s.op != Op::Idle) {
            self.stages
                .push(Stage::idle("rest at the end", Duration::from_secs(2)));
        }
    }
}

#[cfg(test)]
mod tests;
