//! The settings among which is searched: kinds of servers, and for each its dials.

/// Everything that may be tried.
#[derive(Clone, Debug, Default)]
pub struct Space {
    /// Kinds of servers.
    pub kinds: Vec<ServerKind>,
}

/// An architecture with or without blocking, and what can be set of it.
#[derive(Clone, Debug)]
pub struct ServerKind {
    /// Its name for people, such as `symped, blocking`.
    pub name: String,
    /// Processes, threads or writers, whatever it has.
    pub tasks: Dial,
    /// Connections at a time.
    pub connections: Dial,
    /// The size of its caches, in MiB.
    pub cache_mib: Dial,
}

/// The values of a setting, in order.
#[derive(Clone, Debug)]
pub struct Dial {
    values: Vec<u32>,
    coarse: Vec<u32>,
}

/// Settings that may be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Candidate {
    /// Which kind of the space.
    pub kind: usize,
    /// Processes, threads or writers; 0: as many as the kind has by itself.
    pub tasks: u32,
    /// Connections at a time.
    pub connections: u32,
    /// The size of its caches, in MiB.
    pub cache_mib: u32,
}

impl Dial {
    /// A dial of `coarse` values, which are tried first, and `fine` ones between and beside them.
    #[must_use]
    pub fn new(coarse: &[u32], fine: &[u32]) -> Self {
        let sorted = |mut values: Vec<u32>| {
            values.sort_unstable();
            values.dedup();
            values
        };
        Self { values: sorted([coarse, fine].concat()), coarse: sorted(coarse.to_vec()) }
    }

    /// What cannot be set.
    #[must_use]
    pub fn fixed(value: u32) -> Self {
        Self::new(&[value], &[])
    }

    /// The next smaller and the next larger value.
    fn beside(&self, value: u32) -> impl Iterator<Item = u32> {
        let below = self.values.iter().rev().find(|known| **known < value);
        let above = self.values.iter().find(|known| **known > value);
        below.into_iter().chain(above).copied()
    }
}

impl Candidate {
    /// What decides among equals: fewer tasks, then less memory for caches, then fewer connections.
    ///
    /// Each task costs memory and switches even when it has nothing to do; a bound on connections costs nothing until
    /// it is reached (Harji, 3.10: "the least resource intensive configuration").
    pub(crate) const fn cost(&self) -> (u32, u32, u32, usize) {
        (self.tasks, self.cache_mib, self.connections, self.kind)
    }
}

impl Space {
    /// The coarse grid of all kinds; each kind has at most its share of `count`, evenly spread, and at least one cell.
    pub(crate) fn coarse(&self, count: usize) -> Vec<Candidate> {
        let share = (count / self.kinds.len().max(1)).max(1);
        let thinned = |cells: Vec<Candidate>| {
            // Steps of the golden section: equal steps would fall into one column of the grid.
            let mut order: Vec<usize> = (0..cells.len()).collect();
            order.sort_by(|one, other| golden(*one).total_cmp(&golden(*other)));
            order.truncate(share);
            order.into_iter().map(move |at| cells[at]).collect::<Vec<_>>()
        };
        self.grids().flat_map(thinned).collect()
    }

    /// How many cells the coarse grid has.
    pub(crate) fn coarse_len(&self) -> usize {
        self.grids().map(|cells| cells.len()).sum()
    }

    fn grids(&self) -> impl Iterator<Item = Vec<Candidate>> {
        self.kinds.iter().enumerate().map(|(kind, of)| {
            let mut cells = Vec::new();
            for &tasks in &of.tasks.coarse {
                for &connections in &of.connections.coarse {
                    for &cache_mib in &of.cache_mib.coarse {
                        cells.push(Candidate { kind, tasks, connections, cache_mib });
                    }
                }
            }
            cells
        })
    }

    /// The settings that are one step of one dial away.
    pub(crate) fn neighbours(&self, of: Candidate) -> Vec<Candidate> {
        let Some(kind) = self.kinds.get(of.kind) else { return Vec::new() };
        let tasks = kind.tasks.beside(of.tasks).map(|tasks| Candidate { tasks, ..of });
        let connections =
            kind.connections.beside(of.connections).map(|connections| Candidate { connections, ..of });
        let caches = kind.cache_mib.beside(of.cache_mib).map(|cache_mib| Candidate { cache_mib, ..of });
        tasks.chain(connections).chain(caches).collect()
    }
}

/// The fractional part of so many golden sections: any first ones of this order are spread evenly.
fn golden(at: usize) -> f64 {
    const GOLDEN: f64 = 0.618_033_988_749_895;
    (at as f64 * GOLDEN).fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space() -> Space {
        let kind = |name: &str| ServerKind {
            name: name.into(),
            tasks: Dial::new(&[1, 4, 16], &[2, 8]),
            connections: Dial::new(&[1000, 4000], &[2000]),
            cache_mib: Dial::fixed(64),
        };
        Space { kinds: vec![kind("a"), kind("b")] }
    }

    #[test]
    fn a_coarse_grid_has_as_many_cells_as_there_is_time_for_and_every_kind() {
        assert_eq!(space().coarse(100).len(), space().coarse_len());
        assert_eq!(space().coarse_len(), 12);
        let thinned = space().coarse(4);
        assert_eq!(thinned.iter().map(|cell| cell.kind).collect::<Vec<_>>(), [0, 0, 1, 1]);
        assert_eq!(space().coarse(1).len(), 2, "a kind that is never tried cannot win");
    }

    #[test]
    fn neighbours_are_a_step_away_also_of_values_that_are_on_no_dial() {
        let of = Candidate { kind: 0, tasks: 4, connections: 4000, cache_mib: 64 };
        let steps: Vec<_> =
            space().neighbours(of).iter().map(|cell| (cell.tasks, cell.connections)).collect();
        assert_eq!(steps, [(2, 4000), (8, 4000), (4, 2000)]);
        let off = Candidate { tasks: 3, connections: 5000, cache_mib: 10, ..of };
        assert_eq!(space().neighbours(off).len(), 4);
        assert!(space().neighbours(Candidate { kind: 7, ..of }).is_empty());
    }
}
