//! Which files a SPECweb99-like load asks for: the classes, sizes and popularities of SPECweb99's static part.
//!
//! A directory holds four classes of nine files. File *k* of class *c* has ⌊102.4 · k · 10^c⌋ bytes; 35 % of the
//! requests go to class 0, 50, 14 and 1 % to the others; inside a class the middle sizes are the most popular; and
//! directories follow Zipf's law with exponent 1. The mean reply has about 14.7 KB.

/// One of the 36 files of one directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MixFile {
    /// Directory, from 0 on; 0 is the most popular.
    pub directory: usize,
    /// Class of sizes, 0 to 3.
    pub class: usize,
    /// Number inside the class, 1 to 9.
    pub number: usize,
}

/// Directories of the set as it is measured: 40 of them hold 205 MB, which stays in the page cache of a small machine.
pub const DIRECTORIES: usize = 40;

const CLASSES: usize = 4;
const NUMBERS: usize = 9;
const CLASS_WEIGHTS: [f64; CLASSES] = [35.0, 50.0, 14.0, 1.0];
/// Rank in popularity of file 1, 2, … 9 of a class; the shares follow Zipf's law over these ranks.
const NUMBER_RANKS: [f64; NUMBERS] = [9.0, 6.0, 4.0, 2.0, 1.0, 3.0, 5.0, 7.0, 8.0];

impl MixFile {
    /// Every file of a set with this many directories.
    pub fn all(directories: usize) -> impl Iterator<Item = Self> {
        (0..directories).flat_map(|directory| {
            (0..CLASSES)
                .flat_map(move |class| (1..=NUMBERS).map(move |number| Self { directory, class, number }))
        })
    }

    /// Its length in bytes.
    #[must_use]
    pub fn bytes(self) -> u64 {
        1024 * self.number as u64 * 10_u64.pow(self.class as u32) / 10
    }

    /// Its path on the server, and below the document root.
    #[must_use]
    pub fn path(self) -> String {
        format!("/file_set/dir{:05}/class{}_{}", self.directory, self.class, self.number)
    }
}

/// A sequence of `length` requests over `directories` directories, the same for the same arguments on every machine.
///
/// # Panics
/// If `directories` is 0.
#[must_use]
pub fn sequence(directories: usize, length: usize) -> Vec<MixFile> {
    assert!(directories > 0, "a mix needs a directory");
    let directory_weights: Vec<f64> = (1..=directories).map(|rank| 1.0 / rank as f64).collect();
    let number_weights = NUMBER_RANKS.map(|rank| 1.0 / rank);
    let mut random = SplitMix64(1999);
    (0..length)
        .map(|_| MixFile {
            directory: random.pick(&directory_weights),
            class: random.pick(&CLASS_WEIGHTS),
            number: random.pick(&number_weights) + 1,
        })
        .collect()
}

/// Steele, Lea and Flood's generator: ten lines that give the same numbers for ever, which no crate promises.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// An index, as often as its weight says.
    fn pick(&mut self, weights: &[f64]) -> usize {
        let unit = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        let mut rest = unit * weights.iter().sum::<f64>();
        for (index, weight) in weights.iter().enumerate() {
            rest -= weight;
            if rest < 0.0 {
                return index;
            }
        }
        weights.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_specweb99() {
        let bytes = |class, number| MixFile { directory: 0, class, number }.bytes();
        assert_eq!((bytes(0, 1), bytes(0, 9)), (102, 921));
        assert_eq!((bytes(1, 1), bytes(1, 9)), (1_024, 9_216));
        assert_eq!((bytes(2, 1), bytes(2, 9)), (10_240, 92_160));
        assert_eq!((bytes(3, 1), bytes(3, 9)), (102_400, 921_600));
        assert_eq!(MixFile::all(1).map(MixFile::bytes).sum::<u64>(), 5_119_484);
        assert_eq!(MixFile::all(40).count(), 1_440);
    }

    #[test]
    fn the_sequence_never_changes() {
        let first: Vec<String> = sequence(40, 3).into_iter().map(MixFile::path).collect();
        assert_eq!(
            first,
            ["/file_set/dir00009/class0_4", "/file_set/dir00016/class1_6", "/file_set/dir00000/class2_4"]
        );
        assert_eq!(sequence(40, 1000), sequence(40, 1000));
    }

    #[test]
    fn the_mean_reply_and_the_classes_are_as_specified() {
        let requests = sequence(650, 200_000);
        let mean = requests.iter().map(|file| file.bytes() as f64).sum::<f64>() / requests.len() as f64;
        assert!((14_200.0..15_200.0).contains(&mean), "mean reply of {mean} bytes");
        for (class, percent) in CLASS_WEIGHTS.iter().enumerate() {
            let share = requests.iter().filter(|file| file.class == class).count() as f64 / 2_000.0;
            assert!((share - percent).abs() < 0.5, "class {class}: {share} %");
        }
    }

    #[test]
    fn directories_follow_zipfs_law() {
        let requests = sequence(40, 200_000);
        let hits = |rank: usize| requests.iter().filter(|file| file.directory == rank - 1).count() as f64;
        assert!((hits(1) / hits(10) - 10.0).abs() < 1.0);
        assert!(hits(40) > 0.0);
    }
}
