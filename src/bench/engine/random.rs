//! xoshiro256** (Blackman, Vigna 2018): the same seed, the same list of requests.

/// The generator's state.
#[derive(Debug, Clone)]
pub struct Xoshiro([u64; 4]);

impl Xoshiro {
    /// Spreads one number over the state by SplitMix64, as its authors advise.
    pub fn new(seed: u64) -> Self {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        Self([next(), next(), next(), next()])
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.0;
        let result = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let t = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= t;
        *d = d.rotate_left(45);
        result
    }

    /// Uniform below `end`; 0 where `end` is.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(end)) >> 64) as u64
    }

    /// Uniform in `0.0..1.0`.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Standard normal (Box-Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_state_gives_the_published_numbers() {
        let mut rng = Xoshiro([1, 2, 3, 4]);
        let first: Vec<u64> = (0..4).map(|_| rng.next_u64()).collect();
        assert_eq!(first, [11520, 0, 1_509_978_240, 1_215_971_899_390_074_240]);
    }

    #[test]
    fn numbers_stay_below_their_end() {
        let mut rng = Xoshiro::new(1);
        assert_eq!(rng.below(0), 0);
        let mut seen = [0u32; 7];
        for _ in 0..7000 {
            if let Some(slot) = seen.get_mut(rng.below(7) as usize) {
                *slot += 1;
            }
        }
        assert_eq!(seen.iter().sum::<u32>(), 7000);
        assert!(seen.iter().all(|n| (850..1150).contains(n)), "{seen:?}");
    }
}
