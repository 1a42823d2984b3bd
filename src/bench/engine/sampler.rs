//! The actor that reads the temperature beside the transfer: one command a reading, as seldom as its cost demands.

use std::time::Duration;

use super::actor::{Action, Actor, Event, Taken};
use crate::bench::run::{self, Ending};

/// Readings before the run, whose median is the cost.
const TRIALS: usize = 5;

/// The share of the time that readings may take.
const SHARE: f64 = 0.005;

/// Distances that are chosen from, in seconds.
const DISTANCES_S: [u64; 6] = [1, 2, 5, 10, 15, 30];

/// A reading that takes longer counts against the sampler.
const SLOW: Duration = Duration::from_millis(500);

/// So many failures, or slow ones, and it is given up.
const PATIENCE: u32 = 2;

/// Where the run stops when nobody says otherwise, in °C.
const MAX_C: f64 = 80.0;

/// The distance of readings that cost so much.
pub fn interval_for(cost: Duration) -> Duration {
    let wanted = cost.as_secs_f64() / SHARE;
    let chosen = DISTANCES_S.iter().find(|d| **d as f64 >= wanted);
    Duration::from_secs(*chosen.unwrap_or(&30))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Trying,
    Running,
    Retired,
}

/// Reads the temperature.
#[derive(Debug)]
pub struct Sampler {
    state: State,
    asked_interval: Option<Duration>,
    interval: Duration,
    next: Duration,
    waiting: bool,
    trials: Vec<Duration>,
    failed: u32,
    slow: u32,
    asked_max_c: Option<f64>,
    max_c: f64,
    /// What is told of it in the report.
    pub told: run::Sampler,
    /// Why there is no temperature, or why it was given up.
    pub why: Option<String>,
}

impl Sampler {
    /// Before the run.
    pub fn new(interval: Option<Duration>, max_c: Option<f64>) -> Self {
        Self {
            state: State::Trying,
            asked_interval: interval,
            interval: Duration::from_secs(1),
            next: Duration::ZERO,
            waiting: false,
            trials: Vec::new(),
            failed: 0,
            slow: 0,
            asked_max_c: max_c,
            max_c: max_c.unwrap_or(MAX_C),
            told: run::Sampler::default(),
            why: None,
        }
    }

    /// Where the run stops, in °C.
    pub fn max_c(&self) -> f64 {
        self.max_c
    }

    fn ask(&mut self) -> Vec<Action> {
        self.waiting = true;
        vec![Action::ReadTemperature]
    }

    fn tried(&mut self, taken: &Taken) -> Vec<Action> {
        match &taken.result {
            Err(why) => {
                // Without a reading at rest there will be none under load.
                self.why = Some(why.clone());
                self.state = State::Retired;
                return vec![Action::Ready];
            }
            Ok((_, source)) => self.told.source = Some((*source).to_owned()),
        }
        if let (None, Some(limit)) = (self.asked_max_c, taken.limit_c) {
            self.max_c = MAX_C.min(limit - 2.0);
        }
        self.trials.push(taken.took);
        if self.trials.len() < TRIALS {
            return self.ask();
        }
        self.trials.sort_unstable();
        let cost = self.trials.get(TRIALS / 2).copied().unwrap_or_default();
        self.interval = self.asked_interval.unwrap_or_else(|| interval_for(cost));
        self.told.cost_ms = Some(cost.as_secs_f64() * 1e3);
        self.told.interval_s = Some(self.interval.as_secs_f64());
        self.state = State::Running;
        if taken
            .result
            .as_ref()
            .is_ok_and(|(celsius, _)| *celsius >= self.max_c)
        {
            return vec![Action::Stop(Ending::TooHot)];
        }
        vec![Action::Ready]
    }

    fn taken(&mut self, taken: &Taken, now: Duration) -> Vec<Action> {
        if taken.took > SLOW {
            self.slow += 1;
        }
        let mut actions = Vec::new();
        match &taken.result {
            Ok((celsius, source)) => {
                self.told.readings += 1;
                self.told.source = Some((*source).to_owned());
                if *celsius >= self.max_c {
                    actions.push(Action::Stop(Ending::TooHot));
                }
            }
            Err(why) => {
                self.told.failures += 1;
                self.failed += 1;
                self.why = Some(why.clone());
            }
        }
        if self.failed >= PATIENCE || self.slow >= PATIENCE {
            self.state = State::Retired;
            self.told.retired_s = Some(now.as_secs_f64());
            if self.failed < PATIENCE {
                self.why = Some("readings took more than half a second".to_owned());
            }
        }
        actions
    }
}

impl Actor for Sampler {
    fn on(&mut self, event: &Event, now: Duration) -> Vec<Action> {
        if let Event::Temperature(taken) = event {
            self.waiting = false;
            return match self.state {
                State::Trying => self.tried(taken),
                State::Running => self.taken(taken, now),
                State::Retired => Vec::new(),
            };
        }
        match (self.state, event) {
            (State::Trying, Event::Start) => self.ask(),
            (State::Running, Event::Start) => {
                self.next = now.saturating_add(self.interval);
                vec![Action::WakeAt(self.next)]
            }
            (State::Running, Event::Wake) if now >= self.next => {
                // A reading that is overdue costs those that it overran.
                while self.next <= now {
                    self.next = self.next.saturating_add(self.interval);
                }
                let mut actions = vec![Action::WakeAt(self.next)];
                if !self.waiting {
                    actions.extend(self.ask());
                }
                actions
            }
            (State::Running, Event::StageEdge) if !self.waiting => self.ask(),
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn reading(celsius: f64, took: Duration) -> Event {
        Event::Temperature(Taken {
            result: Ok((celsius, "sct_status")),
            took,
            limit_c: Some(70.0),
        })
    }

    fn failure() -> Event {
        Event::Temperature(Taken {
            result: Err("no answer".to_owned()),
            took: ms(1),
            limit_c: None,
        })
    }

    fn running(max_c: Option<f64>) -> Sampler {
        let mut sampler = Sampler::new(None, max_c);
        assert_eq!(sampler.on(&Event::Start, ms(0)), [Action::ReadTemperature]);
        for took in [90, 3, 4, 5] {
            assert_eq!(
                sampler.on(&reading(30.0, ms(took)), ms(0)),
                [Action::ReadTemperature]
            );
        }
        assert_eq!(sampler.on(&reading(30.0, ms(4)), ms(0)), [Action::Ready]);
        assert_eq!(sampler.on(&Event::Start, ms(0)), [Action::WakeAt(ms(1000))]);
        sampler
    }

    #[test]
    fn the_interval_follows_the_cost() {
        for (cost, interval) in [
            (1, 1),
            (5, 1),
            (6, 2),
            (25, 5),
            (26, 10),
            (60, 15),
            (100, 30),
            (9000, 30),
        ] {
            assert_eq!(interval_for(ms(cost)), Duration::from_secs(interval), "{cost} ms");
        }
        let sampler = running(None);
        assert_eq!(sampler.told.cost_ms, Some(4.0));
        assert_eq!(sampler.told.interval_s, Some(1.0));
        assert_eq!(sampler.max_c(), 68.0);
        let mut own = Sampler::new(Some(Duration::from_secs(7)), None);
        own.on(&Event::Start, ms(0));
        for _ in 0..5 {
            own.on(&reading(30.0, ms(400)), ms(0));
        }
        assert_eq!(own.told.interval_s, Some(7.0));
    }

    #[test]
    fn it_reads_when_due_and_at_the_edges_but_never_twice_at_once() {
        let mut sampler = running(None);
        assert!(sampler.on(&Event::Wake, ms(500)).is_empty());
        assert_eq!(
            sampler.on(&Event::Wake, ms(1000)),
            [Action::WakeAt(ms(2000)), Action::ReadTemperature]
        );
        assert!(sampler.on(&Event::StageEdge, ms(1500)).is_empty());
        assert_eq!(sampler.on(&Event::Wake, ms(3500)), [Action::WakeAt(ms(4000))]);
        sampler.on(&reading(31.0, ms(3)), ms(3600));
        assert_eq!(sampler.on(&Event::StageEdge, ms(3700)), [Action::ReadTemperature]);
        assert_eq!(sampler.told.readings, 1);
    }

    #[test]
    fn it_stops_a_run_that_is_too_hot() {
        let mut sampler = running(Some(60.0));
        assert!(sampler.on(&reading(59.0, ms(3)), ms(100)).is_empty());
        assert_eq!(
            sampler.on(&reading(60.0, ms(3)), ms(200)),
            [Action::Stop(Ending::TooHot)]
        );
    }

    #[test]
    fn a_drive_that_is_too_hot_at_rest_is_stopped_before_the_run() {
        let mut sampler = Sampler::new(None, None);
        sampler.on(&Event::Start, ms(0));
        for _ in 1..TRIALS {
            assert_eq!(
                sampler.on(&reading(68.0, ms(4)), ms(0)),
                [Action::ReadTemperature]
            );
        }
        assert_eq!(
            sampler.on(&reading(68.0, ms(4)), ms(0)),
            [Action::Stop(Ending::TooHot)]
        );
        assert_eq!(sampler.told.interval_s, Some(1.0));
    }

    #[test]
    fn two_failures_or_two_slow_readings_retire_it() {
        for event in [failure(), reading(30.0, ms(501))] {
            let mut sampler = running(None);
            sampler.on(&event, ms(1000));
            assert_eq!(sampler.told.retired_s, None);
            sampler.on(&reading(30.0, ms(3)), ms(1500));
            sampler.on(&event, ms(2000));
            assert_eq!(sampler.told.retired_s, Some(2.0));
            assert!(sampler.on(&Event::Wake, ms(9000)).is_empty());
            assert!(sampler.why.is_some());
        }
    }

    #[test]
    fn without_a_temperature_at_rest_it_never_starts() {
        let mut sampler = Sampler::new(None, None);
        sampler.on(&Event::Start, ms(0));
        assert_eq!(sampler.on(&failure(), ms(0)), [Action::Ready]);
        assert_eq!(sampler.why.as_deref(), Some("no answer"));
        assert!(sampler.on(&Event::Start, ms(0)).is_empty());
        assert_eq!(sampler.told.source, None);
    }
}
