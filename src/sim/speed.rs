//! Speed: how long transfers take, and what they do to the temperature.
//!
//! Rates of the medium, the write cache in front of it, firmware stalls, the throttle's cap, the link's ceiling, and the
//! scatter from second to second, in this order.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::heat::{Heat, Op};
use super::rng::Rng;

/// The longest step inside a transfer: the throttle level may change in the middle of one.
const TRANSFER_STEP_S: f64 = 0.1;

/// How the rate scatters from second to second.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Noise {
    pub sigma: f64,
    pub ar1: f64,
    #[serde(default)]
    pub dip_prob: f64,
    #[serde(default)]
    pub dip_range: Option<(f64, f64)>,
}

/// Rates of the medium and of the link.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rates {
    pub read_mb_s: f64,
    pub write_mb_s: f64,
    pub link_mb_s: f64,
    /// Added to each transfer that does not continue the one before it.
    pub random_us: f64,
}

/// Something for each direction.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Both {
    pub read: f64,
    pub write: f64,
}

impl Both {
    fn of(self, op: Op) -> f64 {
        match op {
            Op::Read => self.read,
            Op::Write => self.write,
        }
    }
}

/// A fast part of the flash that takes writes first.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    pub bytes: f64,
    pub write_mb_s: f64,
    /// How fast it is emptied, once nothing has been moved for so long.
    pub recover_mb_s: f64,
    pub recover_after_s: f64,
}

/// Pauses of the firmware after so many bytes were written; each number is drawn between two limits.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stalls {
    pub after_bytes: f64,
    pub dur_s: (f64, f64),
    pub gap_s: (f64, f64),
    pub rate_mb_s: (f64, f64),
    /// The first comes at once, not after a gap.
    #[serde(default)]
    pub immediate: bool,
}

/// How long requests take that do not continue the one before.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Random {
    /// The host's and the link's part of a request.
    #[serde(default)]
    pub cmd_us: f64,
    /// The first 4 KiB out of the medium; the rest comes at the sequential rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_media_us: Option<f64>,
    /// What a deeper queue hides of it.
    #[serde(default)]
    pub qd_hidden_us: f64,
    /// Whole reads, by their bytes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub read_us: BTreeMap<u64, f64>,
    /// Whole writes, by their bytes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub write_us: BTreeMap<u64, f64>,
}

impl Random {
    /// Seconds that a request takes; `None` where the model says nothing of it.
    fn seconds(&self, op: Op, bytes: f64, rate_mb_s: f64, link_mb_s: f64, queued: bool) -> Option<f64> {
        const FIRST: f64 = 4096.0;
        let table = match op {
            Op::Read => &self.read_us,
            Op::Write => &self.write_us,
        };
        // The table's nearest smaller entry, and what is above it at the sequential rate.
        let tabled = table
            .range(..=bytes as u64)
            .next_back()
            .or_else(|| table.iter().next())
            .filter(|(size, _)| op == Op::Write || **size == bytes as u64)
            .map(|(size, us)| us + (bytes - *size as f64).max(0.0) / rate_mb_s.min(link_mb_s));
        let modelled = self.read_media_us.filter(|_| op == Op::Read).map(|media_us| {
            let hidden = if queued { self.qd_hidden_us } else { 0.0 };
            let rest = (bytes - FIRST).max(0.0) / rate_mb_s.min(link_mb_s);
            self.cmd_us + media_us + bytes.min(FIRST) / link_mb_s + rest - hidden
        });
        tabled.or(modelled).map(|us| us.max(1.0) / 1e6)
    }
}

/// What a profile says of its speed.
#[derive(Debug, Clone)]
pub struct Setup {
    pub rates: Rates,
    /// Rates where a host copies files: what the file system costs is in them.
    pub files_mb_s: Option<Both>,
    /// Times the rate, with data that is all compressible.
    pub compress_gain: Option<Both>,
    pub cache: Option<Cache>,
    pub stalls: Option<Stalls>,
    pub random: Option<Random>,
    pub noise: Option<Noise>,
    /// What a meter sees beside the drive, in W.
    pub link_w: f64,
}

impl Setup {
    /// Rates alone.
    #[cfg(test)]
    pub fn plain(rates: Rates, noise: Option<Noise>) -> Self {
        Self {
            rates,
            files_mb_s: None,
            compress_gain: None,
            cache: None,
            stalls: None,
            random: None,
            noise,
            link_w: 0.0,
        }
    }
}

/// What only the host knows of the requests that it sends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    /// They come from copying files.
    pub files: bool,
    /// The share of their bytes that compresses to nothing, 0 to 1.
    pub compressible: f64,
    /// Requests that are in flight at one time.
    pub in_flight: u32,
}

impl Default for Load {
    fn default() -> Self {
        Self {
            files: false,
            compressible: 0.0,
            in_flight: 1,
        }
    }
}

/// Where the stalls stand.
#[derive(Debug, Clone, Copy)]
enum Pause {
    NotYet,
    Stalled { until: Duration, mb_s: f64 },
    Between { until: Duration },
}

/// How long transfers take, and what they do to the temperature.
#[derive(Debug, Clone)]
pub struct Speed {
    setup: Setup,
    /// What the host told.
    pub load: Load,
    rng: Rng,
    wander: f64,
    factor: f64,
    second: Option<u64>,
    /// Absent where there is no thermal model.
    pub heat: Option<Heat>,
    cache_left: f64,
    rested: Duration,
    written: f64,
    pause: Pause,
    energy_j: f64,
    age: Duration,
}

impl Speed {
    /// A drive at rest.
    pub fn new(setup: Setup, rng: Rng, heat: Option<Heat>) -> Self {
        Self {
            cache_left: setup.cache.as_ref().map_or(0.0, |c| c.bytes),
            setup,
            load: Load::default(),
            rng,
            wander: 0.0,
            factor: 1.0,
            second: None,
            heat,
            rested: Duration::ZERO,
            written: 0.0,
            pause: Pause::NotYet,
            energy_j: 0.0,
            age: Duration::ZERO,
        }
    }

    /// Changes the air's temperature in °C; false where there is no thermal model.
    pub fn set_ambient(&mut self, celsius: f64) -> bool {
        if let Some(heat) = &mut self.heat {
            heat.set_ambient(celsius);
        }
        self.heat.is_some()
    }

    /// What a meter in the cable has counted since the start, in J; `None` without a model of the power.
    pub fn energy_j(&self) -> Option<f64> {
        self.heat.is_some().then_some(self.energy_j)
    }

    /// Lets time pass without a transfer.
    pub fn rest(&mut self, how_long: Duration, asleep: bool) {
        self.age = self.age.saturating_add(how_long);
        let power = self
            .heat
            .as_ref()
            .map(|h| if asleep { h.standby_w() } else { h.idle_w() });
        self.warm(how_long, power);
        let Some(cache) = &self.setup.cache else { return };
        let before = self.rested.as_secs_f64();
        self.rested = self.rested.saturating_add(how_long);
        let emptied_s = self.rested.as_secs_f64() - before.max(cache.recover_after_s);
        if emptied_s > 0.0 {
            self.cache_left = (self.cache_left + emptied_s * cache.recover_mb_s * 1e6).min(cache.bytes);
        }
    }

    fn warm(&mut self, how_long: Duration, power_w: Option<f64>) {
        if let (Some(heat), Some(power)) = (&mut self.heat, power_w) {
            heat.step(how_long, power);
            self.energy_j += (power + self.setup.link_w) * how_long.as_secs_f64();
        }
    }

    /// Moves data; returns how long that takes.
    pub fn transfer(&mut self, op: Op, bytes: u64, sequential: bool) -> Duration {
        let before = self.age;
        let bytes = bytes as f64;
        if !sequential {
            let rates = self.setup.rates;
            let rate = match op {
                Op::Read => rates.read_mb_s,
                Op::Write => rates.write_mb_s,
            };
            let queued = self.load.in_flight > 1;
            let modelled = self
                .setup
                .random
                .as_ref()
                .and_then(|r| r.seconds(op, bytes, rate, rates.link_mb_s, queued));
            if let Some(seconds) = modelled {
                let took = Duration::from_secs_f64(seconds.min(1e6));
                self.age = self.age.saturating_add(took);
                let power = self.heat.as_ref().map(|h| h.transfer_w(op, bytes / seconds));
                self.warm(took, power);
                self.rested = Duration::ZERO;
                return took;
            }
            self.rest(
                Duration::from_secs_f64(rates.random_us.clamp(0.0, 1e9) / 1e6),
                false,
            );
        }
        self.rested = Duration::ZERO;
        let mut left = bytes;
        while left >= 0.5 {
            let (rate, most_s) = self.rate_bytes_per_s(op);
            let dt = (left / rate).min(TRANSFER_STEP_S).min(most_s);
            let moved = rate * dt;
            left -= moved;
            if op == Op::Write {
                self.written += moved;
                self.cache_left = (self.cache_left - moved).max(0.0);
            }
            let step = Duration::from_secs_f64(dt).max(Duration::from_nanos(1));
            self.age = self.age.saturating_add(step);
            let power = self.heat.as_ref().map(|h| h.transfer_w(op, rate));
            self.warm(step, power);
        }
        self.age.saturating_sub(before)
    }

    /// The rate of this moment, and for how many seconds it holds at most.
    fn rate_bytes_per_s(&mut self, op: Op) -> (f64, f64) {
        const LEAST_S: f64 = 1e-6;
        let setup = &self.setup;
        let mut most_s = f64::MAX;
        let mut media = match (setup.files_mb_s.filter(|_| self.load.files), op) {
            (Some(files), _) => files.of(op),
            (None, Op::Read) => setup.rates.read_mb_s,
            (None, Op::Write) => setup.rates.write_mb_s,
        };
        if let Some(gain) = setup.compress_gain {
            media *= 1.0 + (gain.of(op) - 1.0) * self.load.compressible.clamp(0.0, 1.0);
        }
        let cached = setup
            .cache
            .as_ref()
            .filter(|_| op == Op::Write && self.cache_left >= 1.0)
            .map(|c| c.write_mb_s);
        media = cached.unwrap_or(media);
        let cap = self
            .heat
            .as_ref()
            .and_then(|h| h.cap_mb_s(op))
            .unwrap_or(f64::MAX);
        let mut rate = media.min(cap).min(setup.rates.link_mb_s);
        if op == Op::Write
            && let Some((stalled, until)) = self.stalled()
        {
            rate = rate.min(stalled);
            most_s = until.saturating_sub(self.age).as_secs_f64().max(LEAST_S);
        }
        let rate = (rate * 1e6 * self.noise_factor()).max(1000.0);
        if cached.is_some() {
            most_s = most_s.min((self.cache_left / rate).max(LEAST_S));
        }
        (rate, most_s)
    }

    /// The rate inside a stall (none is no limit), and until when that holds; `None` where the drive never stalls.
    fn stalled(&mut self) -> Option<(f64, Duration)> {
        let stalls = self.setup.stalls.as_ref()?;
        if self.written < stalls.after_bytes {
            return None;
        }
        let mut drawn = |(low, high): (f64, f64)| low + (high - low) * self.rng.unit();
        let later = |seconds: f64| self.age.saturating_add(Duration::from_secs_f64(seconds));
        self.pause = match self.pause {
            Pause::NotYet if !stalls.immediate => Pause::Between {
                until: later(drawn(stalls.gap_s)),
            },
            Pause::NotYet => Pause::Stalled {
                until: later(drawn(stalls.dur_s)),
                mb_s: drawn(stalls.rate_mb_s),
            },
            Pause::Between { until } if until <= self.age => Pause::Stalled {
                until: later(drawn(stalls.dur_s)),
                mb_s: drawn(stalls.rate_mb_s),
            },
            Pause::Stalled { until, .. } if until <= self.age => Pause::Between {
                until: later(drawn(stalls.gap_s)),
            },
            same => same,
        };
        match self.pause {
            Pause::Stalled { until, mb_s } => Some((mb_s, until)),
            Pause::Between { until } => Some((f64::MAX, until)),
            Pause::NotYet => None,
        }
    }

    /// `exp(sigma n - sigma^2 / 2)` with an autoregressive `n`, drawn once per second, and now and then a dip.
    fn noise_factor(&mut self) -> f64 {
        let Some(noise) = &self.setup.noise else {
            return 1.0;
        };
        let second = self.age.as_secs();
        if self.second != Some(second) {
            self.second = Some(second);
            self.wander =
                noise.ar1 * self.wander + (1.0 - noise.ar1 * noise.ar1).max(0.0).sqrt() * self.rng.normal();
            self.factor = (noise.sigma * self.wander - noise.sigma * noise.sigma / 2.0).exp();
            if self.rng.unit() < noise.dip_prob
                && let Some((low, high)) = noise.dip_range
            {
                self.factor *= low + (high - low) * self.rng.unit();
            }
        }
        self.factor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATES: Rates = Rates {
        read_mb_s: 400.0,
        write_mb_s: 100.0,
        link_mb_s: 440.0,
        random_us: 100.0,
    };

    fn speed(change: impl FnOnce(&mut Setup)) -> Speed {
        let mut setup = Setup::plain(RATES, None);
        change(&mut setup);
        Speed::new(setup, Rng::from_seed(1), None)
    }

    fn mb_s(speed: &mut Speed, op: Op, megabytes: u64) -> f64 {
        let took = speed.transfer(op, megabytes * 1_000_000, true);
        megabytes as f64 / took.as_secs_f64()
    }

    fn near(value: f64, wanted: f64) {
        assert!(
            (value - wanted).abs() <= wanted * 0.001,
            "{value} is not {wanted}"
        );
    }

    #[test]
    fn the_cache_is_fast_until_it_is_full_and_again_after_a_rest() {
        let mut speed = speed(|s| {
            s.cache = Some(Cache {
                bytes: 1e9,
                write_mb_s: 300.0,
                recover_mb_s: 50.0,
                recover_after_s: 10.0,
            });
        });
        near(mb_s(&mut speed, Op::Write, 900), 300.0);
        // 100 MB at 300, 100 MB at 100.
        near(mb_s(&mut speed, Op::Write, 200), 150.0);
        near(mb_s(&mut speed, Op::Write, 100), 100.0);
        near(mb_s(&mut speed, Op::Read, 100), 400.0);
        speed.rest(Duration::from_secs(9), false);
        near(mb_s(&mut speed, Op::Write, 100), 100.0);
        speed.rest(Duration::from_secs(5), false);
        speed.rest(Duration::from_secs(9), false);
        // Four seconds of recovery are 200 MB.
        near(mb_s(&mut speed, Op::Write, 200), 300.0);
        near(mb_s(&mut speed, Op::Write, 100), 100.0);
    }

    #[test]
    fn stalls_begin_after_so_many_bytes_and_come_again() {
        let mut speed = speed(|s| {
            s.stalls = Some(Stalls {
                after_bytes: 1e9,
                dur_s: (2.0, 2.0),
                gap_s: (8.0, 8.0),
                rate_mb_s: (10.0, 10.0),
                immediate: true,
            });
        });
        near(mb_s(&mut speed, Op::Write, 1000), 100.0);
        near(mb_s(&mut speed, Op::Write, 20), 10.0);
        near(mb_s(&mut speed, Op::Write, 800), 100.0);
        near(mb_s(&mut speed, Op::Read, 100), 400.0);
        near(mb_s(&mut speed, Op::Write, 20), 10.0);
    }

    #[test]
    fn what_the_host_tells_chooses_the_rate() {
        let mut speed = speed(|s| {
            s.files_mb_s = Some(Both {
                read: 300.0,
                write: 80.0,
            });
            s.compress_gain = Some(Both {
                read: 1.0,
                write: 4.4,
            });
        });
        speed.load.files = true;
        near(mb_s(&mut speed, Op::Write, 100), 80.0);
        near(mb_s(&mut speed, Op::Read, 100), 300.0);
        speed.load = Load {
            compressible: 0.5,
            ..Load::default()
        };
        near(mb_s(&mut speed, Op::Write, 100), 270.0);
        speed.load.compressible = 1.0;
        near(mb_s(&mut speed, Op::Write, 440), 440.0);
    }

    #[test]
    fn random_requests_take_what_the_table_says() {
        let mut speed = speed(|s| {
            s.random = Some(Random {
                cmd_us: 100.0,
                read_media_us: Some(300.0),
                qd_hidden_us: 40.0,
                read_us: BTreeMap::from([(8192, 777.0)]),
                write_us: BTreeMap::from([(4096, 5000.0), (524_288, 20_000.0)]),
            });
        });
        let mut us = |op, bytes| speed.transfer(op, bytes, false).as_secs_f64() * 1e6;
        near(us(Op::Read, 4096), 400.0 + 4096.0 / 440.0);
        near(us(Op::Read, 8192), 777.0);
        near(
            us(Op::Read, 524_288),
            400.0 + 4096.0 / 440.0 + (524_288.0 - 4096.0) / 400.0,
        );
        near(us(Op::Write, 4096), 5000.0);
        near(us(Op::Write, 1_048_576), 20_000.0 + 524_288.0 / 100.0);
        speed.load.in_flight = 32;
        let queued = speed.transfer(Op::Read, 4096, false).as_secs_f64() * 1e6;
        near(queued, 360.0 + 4096.0 / 440.0);
    }
}
