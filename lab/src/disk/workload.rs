//! The requests: a mix that does not fit the memory, cold files, and a few files that stay in memory.

use std::path::Path;

use anyhow::Result;

use crate::files::{write_all, write_one};
use crate::load::LoadRequest;
use crate::mix::{self, MixFile};

/// The files of the experiment, and the requests for them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Content {
    /// Directories of the SPECweb99-like set, 5.1 MB each.
    pub(super) directories: usize,
}

impl Content {
    /// Bytes of all files.
    pub(super) fn bytes(self) -> u64 {
        MixFile::all(self.directories).map(MixFile::bytes).sum::<u64>()
            + RESIDENT_FILES as u64 * RESIDENT_BYTES
    }

    /// Writes all files.
    pub(super) fn write(self, root: &Path) -> Result<()> {
        write_all(root, self.directories)?;
        for number in 0..RESIDENT_FILES {
            write_one(root, &resident_path(number), RESIDENT_BYTES)?;
        }
        Ok(())
    }

    /// The SPECweb99-like mix; each turn asks for another part of an endless sequence.
    pub(super) fn mix(self, turn: usize) -> Vec<LoadRequest> {
        let mut sequence = mix::sequence(self.directories, MIX_LENGTH);
        sequence.rotate_left(turn * MIX_STEP % MIX_LENGTH);
        sequence.into_iter().map(request).collect()
    }

    /// All files in turn, in a pseudo-random order: with less memory than content, each requested file has been
    /// evicted. Each turn begins at another position.
    pub(super) fn cold(self, turn: usize) -> Vec<LoadRequest> {
        let mut files: Vec<MixFile> = MixFile::all(self.directories).collect();
        // A number without a common factor with the number of files steps through all of them.
        let step = (1..).map(|more| files.len() * 3 / 8 + more).find(|step| gcd(*step, files.len()) == 1);
        let step = step.unwrap_or(1);
        let order: Vec<usize> = (0..files.len()).map(|index| index * step % files.len()).collect();
        files = order.into_iter().map(|index| files[index]).collect();
        let begin = turn * files.len() * 5 / 13 % files.len();
        files.rotate_left(begin);
        files.into_iter().map(request).collect()
    }

    /// The files that stay in memory, because they are requested all the time.
    pub(super) fn resident(self) -> Vec<LoadRequest> {
        let paths = (0..RESIDENT_FILES).map(resident_path);
        paths.map(|path| LoadRequest::file(path, RESIDENT_BYTES)).collect()
    }
}

fn request(file: MixFile) -> LoadRequest {
    LoadRequest::file(file.path(), file.bytes())
}

fn resident_path(number: usize) -> String {
    format!("/resident/{number:02}.html")
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

const RESIDENT_FILES: usize = 20;
const RESIDENT_BYTES: u64 = 4096;
/// Requests after which the mix repeats itself.
const MIX_LENGTH: usize = 200_000;
/// Between the beginnings of two turns.
const MIX_STEP: usize = 34_567;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cold_files_are_asked_for_once_before_any_is_asked_for_twice() {
        for directories in [1, 7, 100] {
            let mut paths: Vec<String> =
                Content { directories }.cold(3).into_iter().map(|request| request.path).collect();
            paths.sort();
            paths.dedup();
            assert_eq!(paths.len(), directories * 36);
        }
    }

    #[test]
    fn neighbours_on_the_disk_are_not_neighbours_in_the_order() {
        let cold = Content { directories: 10 }.cold(0);
        let near = cold.windows(2).filter(|pair| pair[0].path[..18] == pair[1].path[..18]).count();
        assert_eq!(near, 0, "files of one directory one after the other");
    }
}
