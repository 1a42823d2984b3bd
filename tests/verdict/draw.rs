//! Series drawn at random from a small model of a drive: two heat nodes, a fast cache, a throttle, stalls, link, host.
//!
//! Written from the description of the model only; it shares nothing with the simulator or the detector.

use drivethru::bench::series::{Context, Op, Sample, Series};
use drivethru::bench::verdict::Cause;

/// Uniform and normal draws (xorshift).
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn unit(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    pub fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().max(1e-300).ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[((self.unit() * all.len() as f64) as usize).min(all.len() - 1)]
    }
}

/// How the firmware slows down.
#[derive(Clone)]
enum Throttle {
    None,
    /// Levels: on above, off below, caps for writes and reads.
    Steps(Vec<(f64, f64, f64, f64)>),
    /// Full up to a temperature, then less per degree, never under a part.
    Line(f64, f64, f64),
}

/// What the run does: operation and seconds, again and again; idle times.
struct Plan {
    phases: Vec<(Op, f64)>,
}

struct Drive {
    write: f64,
    read: f64,
    cache_bytes: f64,
    cached: f64,
    refill: f64,
    throttle: Throttle,
    joule_per_gb: f64,
    r_die: f64,
    c_die: f64,
    r_case: f64,
    c_case: f64,
    ambient: f64,
    start: f64,
    lag: f64,
    sensor: bool,
    quantum: f64,
    interval: f64,
    link: f64,
    capacity: f64,
    sigma: f64,
    ar1: f64,
    dips: f64,
}

/// First start, lengths, gaps, rate.
type Stalls = (f64, (f64, f64), (f64, f64), f64);

/// What comes from outside.
#[derive(Clone, Default)]
struct Fate {
    /// After so many seconds: (duration range, gap range, rate).
    stalls: Option<Stalls>,
    /// Start, dead time, new ceiling.
    link: Vec<(f64, f64, f64)>,
    /// Rate and bytes of the page cache.
    page_cache: Option<(f64, f64)>,
    /// Start, length, factor.
    plateau: Option<(f64, f64, f64)>,
    /// Share of the time under load.
    load: Option<f64>,
    /// Share of the capacity, factor.
    cliff: Option<(f64, f64, f64)>,
}

pub struct Draw {
    pub family: &'static str,
    pub cause: Cause,
    pub series: Series,
    /// When it began, where that is to be found.
    pub onset_s: Option<f64>,
    /// Until then nothing happens, whatever the cause; absent where the host disturbs from the start.
    pub quiet_until_s: Option<f64>,
}

#[derive(Default)]
struct Truth {
    thermal: Option<f64>,
    cache: Option<f64>,
    stall: Option<f64>,
    stalls: usize,
    falls: usize,
    releases: usize,
    cliff: Option<f64>,
}

fn run(dice: &mut Dice, d: &Drive, fate: &Fate, plan: &Plan, offset: f64) -> (Series, Truth) {
    let mut truth = Truth::default();
    let dt = 0.1;
    let (mut die, mut case) = (d.start, d.start - 1.0);
    let mut sensor = die;
    let mut cache = d.cache_bytes;
    let mut level = 0_usize;
    let mut noise = 0.0;
    let mut written = 0.0;
    let mut total = 0.0;
    let mut t = 0.0;
    let mut idle_s = 0.0;
    let (mut stall_until, mut next_stall) = (-1.0, fate.stalls.as_ref().map_or(f64::MAX, |s| s.0));
    let mut load_until = 0.0;
    let mut loaded: Option<f64> = None;
    let mut buffered = fate.page_cache.map_or(0.0, |p| p.1);
    let mut samples = Vec::new();
    let mut next_reading = 0.0;
    let mut held = None;
    for (op, seconds) in &plan.phases {
        let mut left = *seconds;
        while left > 0.0 {
            let mut moved = 0.0;
            let mut factor = 1.0;
            noise = d.ar1 * noise + (1.0 - d.ar1 * d.ar1).sqrt() * dice.normal();
            factor *= (d.sigma * noise - d.sigma * d.sigma / 2.0).exp();
            if dice.chance(d.dips) {
                factor *= dice.between(0.3, 0.9);
            }
            if let (Some(share), true) = (fate.load, t >= load_until) {
                let on = dice.chance(share);
                load_until = t + if on {
                    dice.between(1.0, 7.0)
                } else {
                    dice.between(2.0, 12.0)
                };
                loaded = on.then(|| dice.between(0.25, 0.75));
            }
            for _ in 0..10 {
                let mut rate = 0.0;
                if *op != Op::Idle {
                    let mut media = if *op == Op::Write { d.write } else { d.read };
                    if *op == Op::Write && cache > 0.0 {
                        media = d.cached;
                    }
                    match &d.throttle {
                        Throttle::None => {}
                        Throttle::Steps(levels) => {
                            if level > 0 {
                                let (_, _, w, r) = levels[level - 1];
                                media = media.min(if *op == Op::Write { w } else { r });
                            }
                        }
                        Throttle::Line(from, slope, least) => {
                            let part = (1.0 - (die - from).max(0.0) * slope).max(*least);
                            if part < 0.99 && truth.thermal.is_none() {
                                truth.thermal = Some(t);
                            }
                            media *= part;
                        }
                    }
                    if let (Some((share, f, wide)), Op::Write) = (fate.cliff, *op) {
                        let at = (offset + written) / d.capacity;
                        if at >= share {
                            truth.cliff = truth.cliff.or(Some(t));
                            media *= 1.0 - (1.0 - f) * ((at - share) / wide.max(1e-6)).min(1.0);
                        }
                    }
                    if let Some((start, length, f)) = fate.plateau
                        && (start..start + length).contains(&t)
                    {
                        media *= f;
                    }
                    media *= loaded.unwrap_or(1.0);
                    let mut ceiling = d.link;
                    let mut dead = false;
                    for (start, length, new) in &fate.link {
                        dead |= t >= *start && t < start + length;
                        if t >= *start {
                            ceiling = ceiling.min(*new);
                        }
                    }
                    rate = media.min(ceiling) * factor;
                    rate = rate.min(ceiling * 1.03);
                    if dead {
                        rate = 0.0;
                    }
                    if let Some((_, durations, gaps, floor)) = &fate.stalls {
                        if t >= next_stall && *op == Op::Write {
                            let length = dice.between(durations.0, durations.1);
                            stall_until = t + length;
                            next_stall = stall_until + dice.between(gaps.0, gaps.1);
                            truth.stall = truth.stall.or(Some(t));
                            truth.stalls += 1;
                        }
                        if t < stall_until && *op == Op::Write {
                            rate = rate.min(floor * factor);
                        }
                    }
                    if buffered > 0.0 {
                        let fast = fate.page_cache.map_or(0.0, |p| p.0) * factor;
                        buffered -= fast * dt * 1e6;
                        moved += fast * dt;
                        total += fast * dt * 1e6;
                        written += fast * dt * 1e6;
                        rate = 0.0;
                    }
                }
                let bytes = rate * dt * 1e6;
                if *op == Op::Write {
                    if cache > 0.0 {
                        cache -= bytes;
                        if cache <= 0.0 {
                            truth.cache = truth.cache.or(Some(t));
                        }
                    }
                    written += bytes;
                }
                total += bytes;
                moved += rate * dt;
                idle_s = if *op == Op::Idle { idle_s + dt } else { 0.0 };
                if idle_s > 10.0 && d.cache_bytes > 0.0 {
                    cache = (cache.max(0.0) + d.refill * dt * 1e6).min(d.cache_bytes);
                }
                let active = if rate > 0.0 { 0.8 } else { 0.0 };
                let power = 0.6 + active + d.joule_per_gb * rate / 1e3;
                die += dt * (power - (die - case) / d.r_die) / d.c_die;
                case += dt * ((die - case) / d.r_die - (case - d.ambient) / d.r_case) / d.c_case;
                sensor += dt * (die - sensor) / d.lag;
                if let Throttle::Steps(levels) = &d.throttle {
                    if levels.get(level).is_some_and(|l| die >= l.0) {
                        level += 1;
                        truth.falls += 1;
                        truth.thermal = truth.thermal.or(Some(t));
                    } else if level > 0 && die < levels[level - 1].1 {
                        level -= 1;
                        truth.releases += 1;
                    }
                }
                t += dt;
            }
            left -= 1.0;
            if d.sensor && t >= next_reading {
                held = Some((sensor / d.quantum).round() * d.quantum);
                next_reading = t + d.interval - 0.01;
            } else {
                held = None;
            }
            samples.push(Sample {
                t_s: (t * 10.0).round() / 10.0,
                cumulative_bytes: total as u64,
                temp_c: held,
                ..Sample::new(t, moved, *op)
            });
        }
    }
    let _ = held;
    let series = Series {
        samples,
        context: Context {
            capacity_bytes: Some(d.capacity as u64),
            link_mb_s: Some(d.link),
            temp_interval_s: d.sensor.then_some(d.interval),
            has_temp: Some(d.sensor),
            start_offset_bytes: offset as u64,
            notices: Vec::new(),
        },
    };
    (series, truth)
}

/// A drive of one of three classes of link, cool and flat.
fn drive(dice: &mut Dice) -> Drive {
    let link = dice.of(&[440.0, 440.0, 1050.0, 2000.0]);
    let part = dice.between(0.55, 1.0);
    let write = link * part;
    Drive {
        write,
        read: (write * dice.between(1.0, 1.4)).min(link),
        cache_bytes: 0.0,
        cached: 0.0,
        refill: 0.0,
        throttle: Throttle::None,
        joule_per_gb: dice.between(1.5, 3.0) * 440.0 / link,
        r_die: dice.between(5.0, 9.0),
        c_die: dice.between(2.0, 6.0),
        r_case: dice.between(6.0, 12.0),
        c_case: dice.between(40.0, 120.0),
        ambient: dice.between(20.0, 30.0),
        start: 0.0,
        lag: dice.between(1.0, 5.0),
        sensor: true,
        quantum: 1.0,
        interval: dice.of(&[1.0, 1.0, 2.0, 5.0]),
        link,
        capacity: dice.of(&[250e9, 500e9, 1e12]) * link / 440.0,
        sigma: dice.between(0.01, 0.04),
        ar1: dice.between(0.2, 0.75),
        dips: dice.between(0.0, 0.02),
    }
}

/// Steady temperature under writes, minus ambient.
fn rise(d: &Drive, rate: f64) -> f64 {
    (1.4 + d.joule_per_gb * rate / 1e3) * (d.r_die + d.r_case)
}

fn settle(d: &mut Drive) {
    if d.start == 0.0 {
        d.start = d.ambient + 0.6 * (d.r_die + d.r_case);
    }
}

fn writes(seconds: f64) -> Plan {
    Plan {
        phases: vec![(Op::Write, seconds.round())],
    }
}

/// Writes and reads in turns.
fn turns(dice: &mut Dice, seconds: f64) -> Plan {
    let mut phases = Vec::new();
    let mut t = 0.0;
    while t < seconds {
        let w = dice.between(15.0, 60.0).round();
        let r = dice.between(10.0, 40.0).round();
        phases.push((Op::Write, w));
        phases.push((Op::Read, r));
        t += w + r;
    }
    Plan { phases }
}

/// Makes the drive reach `on` after a while of full writes.
fn warm(d: &mut Drive, on: f64, dice: &mut Dice) {
    let rate = d.write;
    let wanted = (on - d.ambient) * dice.between(1.12, 1.5);
    let resistance = d.r_die + d.r_case;
    d.joule_per_gb = ((wanted / resistance - 1.4) / (rate / 1e3)).max(0.2);
    let cold = on - dice.between(12.0, 22.0);
    d.start = cold.max(d.ambient + 3.0);
}

/// Draws until the model did what the family is about.
pub fn draw(seed: u64) -> Draw {
    for attempt in 0..200 {
        let mut dice = Dice::new(seed * 1_000 + attempt);
        // Let the first draws of near seeds differ.
        for _ in 0..16 {
            dice.unit();
        }
        if let Some(draw) = attempt_one(seed, &mut dice) {
            return draw;
        }
    }
    panic!("seed {seed}: the model never does it");
}

pub const FAMILIES: u64 = 24;

fn attempt_one(seed: u64, dice: &mut Dice) -> Option<Draw> {
    let mut d = drive(dice);
    let mut fate = Fate::default();
    let mut offset = 0.0;
    let length = dice.between(400.0, 1100.0);
    let mut plan = writes(length);
    let thermal_ok = |t: &Truth| t.thermal.filter(|t| (40.0..330.0).contains(t));
    let (family, cause): (&'static str, Cause) = match seed % FAMILIES {
        0 | 1 => {
            let on = dice.between(46.0, 75.0);
            let (w, r) = (dice.between(0.55, 0.85), dice.between(0.6, 0.85));
            d.throttle = Throttle::Steps(vec![(on, on - 15.0, d.write * w, d.read * r)]);
            warm(&mut d, on, dice);
            plan = turns(dice, length);
            ("thermal files", Cause::Thermal)
        }
        2 => {
            let on = dice.between(50.0, 72.0);
            let cap = d.write * dice.between(0.1, 0.3);
            d.throttle = Throttle::Steps(vec![(on, on - dice.between(6.0, 9.0), cap, d.read)]);
            warm(&mut d, on, dice);
            plan = Plan {
                phases: vec![
                    (Op::Write, 500.0),
                    (Op::Idle, dice.between(120.0, 240.0).round()),
                    (Op::Write, 350.0),
                ],
            };
            ("thermal severe", Cause::Thermal)
        }
        3 | 4 => {
            let on = dice.between(50.0, 75.0);
            let cap = d.write * dice.between(0.2, 0.45);
            d.throttle = Throttle::Steps(vec![(on, on - dice.between(5.0, 9.0), cap, cap)]);
            warm(&mut d, on, dice);
            plan = writes(length.max(700.0));
            ("thermal duty", Cause::Thermal)
        }
        5 => {
            let on = dice.between(52.0, 66.0);
            d.throttle = Throttle::Line(on, dice.between(0.03, 0.07), 0.3);
            warm(&mut d, on, dice);
            d.joule_per_gb *= 1.3;
            ("thermal proportional", Cause::Thermal)
        }
        6 => {
            let on = dice.between(58.0, 70.0);
            d.cached = d.write;
            d.write *= dice.between(0.6, 0.8);
            d.cache_bytes = d.cached * dice.between(20.0, 60.0) * 1e6;
            let (w, r) = (
                d.write * dice.between(0.5, 0.75),
                d.read * dice.between(0.5, 0.75),
            );
            d.throttle = Throttle::Steps(vec![
                (on, on - 15.0, w, r),
                (on + 5.0, on - 5.0, w * 0.5, r * 0.5),
            ]);
            warm(&mut d, on, dice);
            plan = turns(dice, length);
            ("cache, then thermal", Cause::Thermal)
        }
        7 => {
            d.cached = d.write;
            d.write *= dice.between(0.72, 0.87);
            d.cache_bytes = d.cached * dice.between(10.0, 60.0) * 1e6;
            d.start = d.ambient + rise(&d, d.write) * dice.between(0.2, 0.6);
            ("cache small step", Cause::SlcCache)
        }
        8 | 9 => {
            d.cached = d.write;
            d.write *= dice.between(0.2, 0.6);
            d.cache_bytes = d.cached * dice.between(25.0, 120.0) * 1e6;
            plan = turns(dice, length);
            ("cache, reads between", Cause::SlcCache)
        }
        10 => {
            d.cached = d.write;
            d.write *= dice.between(0.1, 0.5);
            d.cache_bytes = d.cached * dice.between(25.0, 90.0) * 1e6;
            d.refill = d.cached;
            plan = Plan {
                phases: vec![
                    (Op::Write, 250.0),
                    (Op::Idle, dice.between(60.0, 200.0).round()),
                    (Op::Write, 250.0),
                ],
            };
            ("cache, two bursts", Cause::SlcCache)
        }
        11 => {
            d.cached = d.write;
            d.write *= dice.between(0.5, 0.8);
            d.cache_bytes = d.cached * dice.between(50.0, 150.0) * 1e6;
            let hot = dice.between(70.0, 80.0);
            warm(&mut d, hot, dice);
            d.joule_per_gb *= 1.5;
            ("cache while warming", Cause::SlcCache)
        }
        12 => {
            d.cached = d.write;
            d.write *= dice.between(0.1, 0.6);
            d.cache_bytes = d.cached * dice.between(20.0, 120.0) * 1e6;
            d.sensor = false;
            ("cache, no sensor", Cause::SlcCache)
        }
        13 => {
            d.cached = d.write;
            d.write *= dice.between(0.75, 0.85);
            d.cache_bytes = d.cached * dice.between(8.0, 30.0) * 1e6;
            fate.stalls = Some((
                dice.between(100.0, 250.0),
                (3.0, 5.0),
                (9.0, 16.0),
                dice.between(5.0, 50.0),
            ));
            ("stalls after a cache", Cause::PeriodicStall)
        }
        14 => {
            d.write = dice.between(15.0, 40.0);
            d.sensor = false;
            d.capacity = 64e9;
            fate.stalls = Some((dice.between(50.0, 200.0), (1.0, 2.2), (15.0, 25.0), 0.3));
            ("short stalls of a stick", Cause::PeriodicStall)
        }
        15 => {
            fate.stalls = Some((
                dice.between(60.0, 150.0),
                (5.0, 9.0),
                (45.0, 65.0),
                dice.between(5.0, 20.0),
            ));
            plan = writes(length.max(600.0));
            ("long stalls", Cause::PeriodicStall)
        }
        16 => {
            let start = dice.between(60.0, 300.0);
            fate.link = vec![(start, dice.between(4.0, 35.0), f64::MAX)];
            ("link reset", Cause::Link)
        }
        17 => {
            let start = dice.between(60.0, 250.0);
            fate.link = vec![(start, dice.between(2.5, 6.0), dice.between(35.0, 43.0))];
            plan = turns(dice, length);
            ("link to USB 2", Cause::Link)
        }
        18 => {
            d.link = 1050.0;
            d.write = dice.between(700.0, 1000.0);
            d.read = 1000.0;
            fate.link = vec![(
                dice.between(60.0, 250.0),
                dice.between(2.5, 5.0),
                dice.between(400.0, 450.0),
            )];
            ("link 10 to 5", Cause::Link)
        }
        19 => {
            d.write = d.link * dice.between(0.2, 0.6);
            fate.page_cache = Some((
                d.link * dice.between(2.0, 4.0),
                3.0 * d.link * dice.between(3.0, 8.0) * 1e6,
            ));
            ("page cache", Cause::HostNoise)
        }
        20 => {
            fate.load = Some(dice.between(0.3, 0.45));
            ("load", Cause::HostNoise)
        }
        21 => {
            fate.plateau = Some((
                dice.between(80.0, 200.0),
                dice.between(40.0, 120.0),
                dice.between(0.4, 0.75),
            ));
            ("plateau", Cause::HostNoise)
        }
        22 => {
            match dice.of(&[0, 1, 2]) {
                0 => {
                    d.write = dice.between(8.0, 25.0);
                    d.sensor = false;
                }
                1 => {
                    let hot = dice.between(70.0, 80.0);
                    warm(&mut d, hot, dice);
                }
                _ => d.write = d.link,
            }
            ("none", Cause::None)
        }
        _ => {
            let share = dice.between(0.75, 0.92);
            let wide = if dice.chance(0.5) { 0.0 } else { 0.01 };
            fate.cliff = Some((share, dice.between(0.2, 0.5), wide));
            d.sensor = dice.chance(0.5);
            let before = dice.between(150.0, 500.0);
            let begin = dice.between(0.0, 0.5);
            d.capacity = d.write * before * 1e6 / (share - begin);
            offset = begin * d.capacity;
            plan = writes(before + dice.between(100.0, 250.0));
            ("cliff", Cause::CapacityCliff)
        }
    };
    settle(&mut d);
    let (series, truth) = run(dice, &d, &fate, &plan, offset);
    let end = series.samples.last().map_or(0.0, |s| s.t_s);
    // One fall in one pass is an open case, and another family.
    if family == "thermal duty" && truth.releases == 0 || family == "thermal severe" && truth.falls < 2 {
        return None;
    }
    let onset_s = match cause {
        Cause::Thermal => Some(thermal_ok(&truth)?),
        Cause::SlcCache => Some(truth.cache.filter(|t| *t < end - 60.0)?),
        Cause::PeriodicStall => Some(truth.stall.filter(|_| truth.stalls >= 5)?),
        Cause::Link => fate.link.first().map(|l| l.0),
        Cause::CapacityCliff => Some(truth.cliff.filter(|t| *t < end - 30.0)?),
        Cause::HostNoise | Cause::None => None,
    };
    let quiet_until_s = [truth.thermal, truth.cache, truth.stall, truth.cliff]
        .into_iter()
        .flatten()
        .chain(fate.link.first().map(|l| l.0))
        .reduce(f64::min)
        .or((cause == Cause::None).then_some(f64::INFINITY));
    // A full drive elsewhere would be another family.
    if cause != Cause::CapacityCliff {
        let written = series.samples.last().map_or(0.0, |s| s.cumulative_bytes as f64);
        let mut series = series;
        if written > 0.6 * d.capacity {
            series.context.capacity_bytes = Some((written * 2.5) as u64);
        }
        return Some(Draw {
            family,
            cause,
            series,
            onset_s,
            quiet_until_s,
        });
    }
    Some(Draw {
        family,
        cause,
        series,
        onset_s,
        quiet_until_s,
    })
}
