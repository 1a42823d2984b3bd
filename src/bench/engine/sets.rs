//! The three folders of the direct-attached-storage suite: sizes and names, made up from a seed.

use serde::{Deserialize, Serialize};

use super::random::Xoshiro;

/// One file of a set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    /// `photos/dir07/img0123.jpg`.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// What its content is made from, with the number of the pass and the place on the medium; in hexadecimal digits, because
    /// not every reader of JSON holds 64 bits.
    #[serde(with = "hex")]
    pub seed: u64,
}

impl File {
    /// The name of its content in a pass: no two are alike.
    pub fn content(&self, pass: u32) -> u64 {
        Xoshiro::new(self.seed ^ u64::from(pass).rotate_left(32)).next_u64()
    }
}

mod hex {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(seed: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&format!("{seed:016x}"))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        let text = String::deserialize(from)?;
        u64::from_str_radix(&text, 16).map_err(D::Error::custom)
    }
}

/// A folder that is copied as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Set {
    /// `photos`, `videos`, `bluray`.
    pub name: String,
    /// Its files, in the order in which they are copied.
    pub files: Vec<File>,
}

impl Set {
    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|f| f.bytes).sum()
    }

    /// Number of its sub-folders.
    pub fn folders(&self) -> usize {
        let mut folders: Vec<&str> = self
            .files
            .iter()
            .filter_map(|f| Some(f.path.rsplit_once('/')?.0))
            .filter(|folder| folder.contains('/'))
            .collect();
        folders.sort_unstable();
        folders.dedup();
        folders.len()
    }
}

/// `count` log-normal sizes that add up to `total`; the last one takes up what rounding left.
fn sizes(rng: &mut Xoshiro, count: usize, total: u64, sigma: f64) -> Vec<u64> {
    let drawn: Vec<f64> = (0..count).map(|_| (sigma * rng.normal()).exp()).collect();
    let scale = total as f64 / drawn.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    let mut sizes: Vec<u64> = drawn.iter().map(|d| ((d * scale) as u64).max(1)).collect();
    let sum: u64 = sizes.iter().sum();
    if let Some(last) = sizes.last_mut() {
        *last = (*last + total).saturating_sub(sum);
    }
    sizes
}

fn shuffle<T>(rng: &mut Xoshiro, items: &mut [T]) {
    for end in (1..items.len()).rev() {
        items.swap(end, rng.below(end as u64 + 1) as usize);
    }
}

fn set(rng: &mut Xoshiro, name: &str, folders: usize, files: Vec<(&str, u64)>) -> Set {
    let count = files.len();
    Set {
        name: name.to_owned(),
        files: files
            .into_iter()
            .enumerate()
            .map(|(i, (ending, bytes))| File {
                path: format!("{name}/dir{:02}/file{i:04}.{ending}", i * folders / count.max(1)),
                bytes,
                seed: rng.next_u64(),
            })
            .collect(),
    }
}

/// Photos, videos and the folder of a disc, 42.4 GB together.
pub fn das_sets(seed: u64) -> Vec<Set> {
    const RAW_BYTES: u64 = 9_350_000_000;
    let mut rng = Xoshiro::new(seed);
    let mut photos: Vec<(&str, u64)> = Vec::new();
    photos.extend(
        sizes(&mut rng, 374, RAW_BYTES, 0.1)
            .into_iter()
            .map(|b| ("raw", b)),
    );
    photos.extend(
        sizes(&mut rng, 3946, 15_600_000_000 - RAW_BYTES, 0.5)
            .into_iter()
            .map(|b| ("jpg", b)),
    );
    shuffle(&mut rng, &mut photos);
    let videos = sizes(&mut rng, 244, 16_100_000_000, 0.9)
        .into_iter()
        .map(|b| ("mov", b))
        .collect();
    // Log-uniform from 2 KB to 4 MB; what they leave is in the streams, more than 98 %.
    let mut disc: Vec<(&str, u64)> = (0..52)
        .map(|_| ("bdmv", (2000.0 * 2000f64.powf(rng.unit())) as u64))
        .collect();
    let small: u64 = disc.iter().map(|(_, bytes)| bytes).sum();
    let streams = sizes(&mut rng, 8, 10_700_000_000 - small, 1.0);
    disc.extend(streams.into_iter().map(|b| ("m2ts", b)));
    shuffle(&mut rng, &mut disc);
    vec![
        set(&mut rng, "photos", 61, photos),
        set(&mut rng, "videos", 6, videos),
        set(&mut rng, "bluray", 5, disc),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sets_have_the_counts_and_volumes_of_the_suite() {
        let sets = das_sets(1);
        let summary: Vec<(&str, usize, u64, usize)> = sets
            .iter()
            .map(|s| (s.name.as_str(), s.files.len(), s.bytes(), s.folders()))
            .collect();
        assert_eq!(
            summary,
            [
                ("photos", 4320, 15_600_000_000, 61),
                ("videos", 244, 16_100_000_000, 6),
                ("bluray", 60, 10_700_000_000, 5),
            ]
        );
        let streams: u64 = sets
            .last()
            .into_iter()
            .flat_map(|s| &s.files)
            .filter(|f| f.path.ends_with("m2ts"))
            .map(|f| f.bytes)
            .sum();
        assert!(streams as f64 > 0.98 * 10.7e9);
        assert!(sets.iter().flat_map(|s| &s.files).all(|f| f.bytes > 0));
        assert_eq!(sets, das_sets(1));
        assert_ne!(sets, das_sets(2));
    }
}
