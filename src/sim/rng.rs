//! A small reproducible random source: same name or seed, same run.

/// SplitMix64: one 64-bit state, an odd increment and two multiplications.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// Starts from a number.
    pub fn from_seed(seed: u64) -> Self {
        Self(seed)
    }

    /// Starts from a name (FNV-1a, 64 bits).
    pub fn from_name(name: &str) -> Self {
        Self(name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, b| {
            (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
        }))
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
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
    fn the_same_name_gives_the_same_numbers_and_they_look_normal() {
        let mut a = Rng::from_name("hdd");
        let mut b = Rng::from_name("hdd");
        assert_eq!(a.next_u64(), b.next_u64());
        assert_ne!(Rng::from_name("hdd").next_u64(), Rng::from_name("ssd").next_u64());
        let draws: Vec<f64> = (0..20_000).map(|_| a.normal()).collect();
        let mean = draws.iter().sum::<f64>() / 20_000.0;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 20_000.0;
        assert!(mean.abs() < 0.03, "{mean}");
        assert!((variance - 1.0).abs() < 0.05, "{variance}");
    }
}
