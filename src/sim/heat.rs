//! Heat and throttling: a two-node thermal model on the virtual clock.
//!
//! Controller and NAND form one node, the case the other, the sensor lags behind the first. Between changes of power the
//! three equations are linear, so a step of any length is solved exactly.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Sensor updates that are followed one by one in a rest before the model jumps to the last one.
const FOLLOWED_UPDATES: u32 = 16;

/// Which way data goes, for rates, caps and heat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    Read,
    Write,
}

/// Electrical and thermal constants of a drive.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thermal {
    pub idle_w: f64,
    /// Power in standby and sleep; `idle_w` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standby_w: Option<f64>,
    pub active_w: f64,
    pub write_j_per_gb: f64,
    pub read_j_per_gb: f64,
    pub r_die_case_k_w: f64,
    pub r_case_amb_k_w: f64,
    pub c_die_j_k: f64,
    pub c_case_j_k: f64,
    pub sensor_tau_s: f64,
    pub sensor_step_c: f64,
    pub sensor_update_s: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_c: Option<f64>,
}

/// One step of a firmware's rate cap.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThrottleLevel {
    pub t_on_c: f64,
    pub t_off_c: f64,
    pub write_mb_s: f64,
    pub read_mb_s: f64,
}

/// What the heat model needs to know.
#[derive(Debug, Clone)]
pub struct HeatSetup {
    pub thermal: Thermal,
    pub levels: Vec<ThrottleLevel>,
    pub ambient_c: f64,
    /// Power that the start is the steady state of.
    pub start_w: f64,
}

/// Temperatures and throttle level of one drive.
#[derive(Debug, Clone)]
pub struct Heat {
    thermal: Thermal,
    levels: Vec<ThrottleLevel>,
    ambient_c: f64,
    level: usize,
    die_c: f64,
    case_c: f64,
    lagged_c: f64,
    shown_c: f64,
    highest_c: f64,
    lowest_c: f64,
    age: Duration,
}

impl Heat {
    /// At rest in a steady state, or at `start_c` when the setup gives it.
    pub fn new(setup: HeatSetup) -> Self {
        let t = &setup.thermal;
        let (die_c, case_c) = match t.start_c {
            Some(start) => (start, start - setup.start_w * t.r_die_case_k_w),
            None => {
                let case = setup.ambient_c + setup.start_w * t.r_case_amb_k_w;
                (case + setup.start_w * t.r_die_case_k_w, case)
            }
        };
        let mut heat = Self {
            thermal: setup.thermal,
            levels: setup.levels,
            ambient_c: setup.ambient_c,
            level: 0,
            die_c,
            case_c,
            lagged_c: die_c,
            shown_c: 0.0,
            highest_c: f64::MIN,
            lowest_c: f64::MAX,
            age: Duration::ZERO,
        };
        heat.update_sensor();
        heat
    }

    /// The temperature that the drive reports, in °C.
    pub fn sensor_c(&self) -> f64 {
        self.shown_c
    }

    /// Lowest and highest reported since the start, in °C.
    pub fn extremes_c(&self) -> (f64, f64) {
        (self.lowest_c, self.highest_c)
    }

    /// The cap of the level in force, in MB/s.
    pub fn cap_mb_s(&self, op: Op) -> Option<f64> {
        let level = self.levels.get(self.level.checked_sub(1)?)?;
        Some(match op {
            Op::Read => level.read_mb_s,
            Op::Write => level.write_mb_s,
        })
    }

    /// Changes the air's temperature.
    pub fn set_ambient(&mut self, celsius: f64) {
        self.ambient_c = celsius;
    }

    /// Power at rest, in W.
    pub fn idle_w(&self) -> f64 {
        self.thermal.idle_w
    }

    /// Power in standby, in W.
    pub fn standby_w(&self) -> f64 {
        self.thermal.standby_w.unwrap_or(self.thermal.idle_w)
    }

    /// Power while moving data at `bytes_per_s`, in W.
    pub fn transfer_w(&self, op: Op, bytes_per_s: f64) -> f64 {
        let j_per_gb = match op {
            Op::Read => self.thermal.read_j_per_gb,
            Op::Write => self.thermal.write_j_per_gb,
        };
        self.thermal.idle_w + self.thermal.active_w + j_per_gb * bytes_per_s / 1e9
    }

    /// Lets time pass at constant power.
    pub fn step(&mut self, how_long: Duration, power_w: f64) {
        let end = self.age.saturating_add(how_long);
        let period = Duration::from_secs_f64(self.thermal.sensor_update_s.clamp(0.01, 3600.0));
        let mut followed = 0;
        loop {
            let next = if followed < FOLLOWED_UPDATES {
                boundary_after(self.age, period)
            } else {
                boundary_at_or_before(end, period).max(boundary_after(self.age, period))
            };
            if next > end {
                break;
            }
            self.evolve(next.saturating_sub(self.age), power_w);
            self.age = next;
            self.update_sensor();
            followed += 1;
        }
        self.evolve(end.saturating_sub(self.age), power_w);
        self.age = end;
    }

    fn update_sensor(&mut self) {
        let step = self.thermal.sensor_step_c.max(0.001);
        self.shown_c = (self.lagged_c / step).round() * step;
        self.highest_c = self.highest_c.max(self.shown_c);
        self.lowest_c = self.lowest_c.min(self.shown_c);
    }

    /// The exact solution over `how_long`, then the level.
    fn evolve(&mut self, how_long: Duration, power_w: f64) {
        let dt = how_long.as_secs_f64();
        if dt <= 0.0 {
            return;
        }
        let t = &self.thermal;
        let a = 1.0 / (t.r_die_case_k_w * t.c_die_j_k);
        let b = 1.0 / (t.r_die_case_k_w * t.c_case_j_k);
        let c = 1.0 / (t.r_case_amb_k_w * t.c_case_j_k);
        let case_end = self.ambient_c + power_w * t.r_case_amb_k_w;
        let die_end = case_end + power_w * t.r_die_case_k_w;
        let (x, y) = (self.die_c - die_end, self.case_c - case_end);
        // x' = -a x + a y,  y' = b x - (b + c) y: two real negative rates, apart by at least 2 sqrt(ab).
        let mean = (a + b + c) / 2.0;
        let spread = (mean * mean - a * c).max(0.0).sqrt();
        let (slow, fast) = (spread - mean, -spread - mean);
        let weight = slow - fast;
        // x = p e^(slow t) + q e^(fast t), from x(0) and x'(0).
        let slope = a * (y - x);
        let p = (slope - fast * x) / weight;
        let q = x - p;
        let (e_slow, e_fast) = ((slow * dt).exp(), (fast * dt).exp());
        self.die_c = die_end + p * e_slow + q * e_fast;
        self.case_c = case_end + p * e_slow * (1.0 + slow / a) + q * e_fast * (1.0 + fast / a);
        let mut tau = t.sensor_tau_s.max(1e-6);
        if [slow, fast].iter().any(|rate| (1.0 + rate * tau).abs() < 1e-6) {
            tau *= 1.0 + 1e-5;
        }
        let (gain_slow, gain_fast) = (p / (1.0 + slow * tau), q / (1.0 + fast * tau));
        let own = self.lagged_c - die_end - gain_slow - gain_fast;
        self.lagged_c = die_end + gain_slow * e_slow + gain_fast * e_fast + own * (-dt / tau).exp();
        while self
            .levels
            .get(self.level)
            .is_some_and(|l| self.die_c >= l.t_on_c)
        {
            self.level += 1;
        }
        while self
            .level
            .checked_sub(1)
            .and_then(|i| self.levels.get(i))
            .is_some_and(|l| self.die_c < l.t_off_c)
        {
            self.level -= 1;
        }
    }
}

fn boundary_at_or_before(at: Duration, period: Duration) -> Duration {
    let periods = at.as_nanos() / period.as_nanos().max(1);
    let nanos = periods.saturating_mul(period.as_nanos());
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

fn boundary_after(at: Duration, period: Duration) -> Duration {
    boundary_at_or_before(at, period).saturating_add(period)
}

#[cfg(test)]
#[allow(clippy::indexing_slicing)]
mod tests {
    use super::*;
    use crate::sim::rng::Rng;
    use crate::sim::speed::{Noise, Rates, Setup, Speed};

    fn thermal(idle_w: f64, active_w: f64, j_per_gb: (f64, f64), r_case: f64, c: (f64, f64)) -> Thermal {
        Thermal {
            idle_w,
            standby_w: None,
            active_w,
            write_j_per_gb: j_per_gb.0,
            read_j_per_gb: j_per_gb.1,
            r_die_case_k_w: 3.0,
            r_case_amb_k_w: r_case,
            c_die_j_k: c.0,
            c_case_j_k: c.1,
            sensor_tau_s: 2.0,
            sensor_step_c: 1.0,
            sensor_update_s: 1.0,
            start_c: None,
        }
    }

    fn ventura() -> Thermal {
        thermal(0.6, 0.55, (8.0, 5.0), 11.8, (2.0, 20.0))
    }

    fn heat(thermal: Thermal, levels: Vec<ThrottleLevel>) -> Heat {
        Heat::new(HeatSetup {
            start_w: thermal.idle_w,
            thermal,
            levels,
            ambient_c: 22.0,
        })
    }

    /// What happened in a run of the review's suite.
    #[derive(Debug, Default)]
    struct Run {
        onset_written_gb: Option<f64>,
        onset_read_gb: f64,
        onset_c: f64,
        highest_c: f64,
        last_c: f64,
        rates: [[(f64, f64); 2]; 2],
        written_gb: f64,
    }

    impl Run {
        fn rate_mb_s(&self, op: usize, capped: usize) -> f64 {
            let (megabytes, seconds) = self.rates[op][capped];
            megabytes / seconds
        }
    }

    /// Three folders, each written and read back three times, with idle gaps between the folders.
    fn suite(mut speed: Speed) -> Run {
        const PIECE: u64 = 8_000_000;
        let mut run = Run::default();
        let mut read_gb = 0.0;
        for (folder, gap_s) in [(15_600_000_000u64, 40), (16_100_000_000, 27), (10_700_000_000, 0)] {
            for pass in 0..6 {
                let op = if pass % 2 == 0 { Op::Write } else { Op::Read };
                for _ in 0..folder / PIECE {
                    let heat = speed.heat.as_ref().unwrap();
                    let capped = heat.cap_mb_s(op).is_some();
                    run.last_c = heat.sensor_c();
                    run.highest_c = run.highest_c.max(run.last_c);
                    if capped && run.onset_written_gb.is_none() {
                        run.onset_written_gb = Some(run.written_gb);
                        run.onset_read_gb = read_gb;
                        run.onset_c = run.last_c;
                    }
                    let took = speed.transfer(op, PIECE, true);
                    let slot = &mut run.rates[usize::from(op == Op::Read)][usize::from(capped)];
                    slot.0 += PIECE as f64 / 1e6;
                    slot.1 += took.as_secs_f64();
                    match op {
                        Op::Write => run.written_gb += PIECE as f64 / 1e9,
                        Op::Read => read_gb += PIECE as f64 / 1e9,
                    }
                }
            }
            speed.rest(Duration::from_secs(gap_s), false);
        }
        run
    }

    fn near(what: &str, value: f64, wanted: f64, tolerance: f64) {
        assert!(
            (value - wanted).abs() <= tolerance,
            "{what}: {value} is not {wanted} ± {tolerance}"
        );
    }

    #[test]
    fn the_ventura_ultra_throttles_as_reported() {
        for seed in 1..=3 {
            let levels = vec![ThrottleLevel {
                t_on_c: 45.0,
                t_off_c: 38.0,
                write_mb_s: 80.0,
                read_mb_s: 100.0,
            }];
            let rates = Rates {
                read_mb_s: 140.0,
                write_mb_s: 100.0,
                link_mb_s: 440.0,
                random_us: 60.0,
            };
            let noise = Noise {
                sigma: 0.05,
                ar1: 0.4,
                dip_prob: 0.01,
                dip_range: Some((0.55, 0.85)),
            };
            let speed = Speed::new(
                Setup::plain(rates, Some(noise)),
                Rng::from_seed(seed),
                Some(heat(ventura(), levels)),
            );
            let run = suite(speed);
            near("onset written GB", run.onset_written_gb.unwrap(), 18.0, 2.5);
            near("onset read GB", run.onset_read_gb, 16.0, 1.5);
            near("onset °C", run.onset_c, 45.0, 1.0);
            near("write before", run.rate_mb_s(0, 0), 100.0, 5.0);
            near("write capped", run.rate_mb_s(0, 1), 80.0, 4.0);
            near("read before", run.rate_mb_s(1, 0), 140.0, 7.0);
            near("read capped", run.rate_mb_s(1, 1), 100.0, 5.0);
            near("last °C", run.last_c, 47.0, 1.5);
            near("written GB", run.written_gb, 127.2, 0.1);
            assert!(run.highest_c < 50.0, "{}", run.highest_c);
        }
    }

    #[test]
    fn the_hotter_brand_falls_to_a_fifth_or_less() {
        let levels = vec![ThrottleLevel {
            t_on_c: 53.0,
            t_off_c: 44.0,
            write_mb_s: 20.0,
            read_mb_s: 80.0,
        }];
        let rates = Rates {
            read_mb_s: 200.0,
            write_mb_s: 150.0,
            link_mb_s: 440.0,
            random_us: 60.0,
        };
        let thermal = thermal(0.5, 0.95, (13.0, 6.0), 14.8, (2.0, 26.0));
        let speed = Speed::new(
            Setup::plain(rates, None),
            Rng::from_seed(1),
            Some(heat(thermal, levels)),
        );
        let run = suite(speed);
        near("onset written GB", run.onset_written_gb.unwrap(), 18.0, 3.0);
        near("onset read GB", run.onset_read_gb, 16.0, 2.0);
        near("write capped", run.rate_mb_s(0, 1), 20.0, 0.1);
        near("read capped", run.rate_mb_s(1, 1), 80.0, 0.1);
    }

    #[test]
    fn one_long_step_equals_many_short_ones_of_a_plain_integration() {
        let t = ventura();
        let mut exact = heat(t.clone(), Vec::new());
        let (mut die, mut case, mut lagged) = (exact.die_c, exact.case_c, exact.lagged_c);
        let mut plain = |power: f64, seconds: f64| {
            let dt = 0.001;
            for _ in 0..(seconds / dt) as u64 {
                let flow = (die - case) / t.r_die_case_k_w;
                let out = (case - 22.0) / t.r_case_amb_k_w;
                lagged += dt * (die - lagged) / t.sensor_tau_s;
                die += dt * (power - flow) / t.c_die_j_k;
                case += dt * (flow - out) / t.c_case_j_k;
            }
            (die, case, lagged)
        };
        for (power, seconds) in [(2.3, 7.0), (0.6, 30.0), (1.9, 400.0), (0.6, 1000.0)] {
            let wanted = plain(power, seconds);
            exact.step(Duration::from_secs_f64(seconds), power);
            near("die", exact.die_c, wanted.0, 0.01);
            near("case", exact.case_c, wanted.1, 0.01);
            near("sensor", exact.lagged_c, wanted.2, 0.01);
        }
    }

    #[test]
    fn years_of_rest_cost_nothing_and_end_at_rest() {
        let mut heat = heat(ventura(), Vec::new());
        heat.step(Duration::from_secs(300), 3.0);
        assert!(heat.sensor_c() > 50.0);
        heat.step(Duration::from_secs(20 * 365 * 86_400), 0.6);
        near("at rest", heat.sensor_c(), 31.0, 0.0);
        let (low, high) = heat.extremes_c();
        assert!(low == 31.0 && high > 50.0);
    }
}
