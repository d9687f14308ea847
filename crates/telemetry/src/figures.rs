//! What is counted for each site, application and origin: statuses, durations, requests in flight.
//!
//! The table is in memory that the master shares with its workers, as [`Counters`](crate::metrics::Counters) are. Every process finds
//! the row of a subject by itself, whatever configuration it has; the first one that looks for it takes a free row. When all
//! are taken, the rest is counted in one row together: labels stay bounded.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use baton_sys::shared_table::{Shape, SharedTable};

/// What a row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject<'a> {
    /// A site, by its name.
    Site(&'a str),
    /// An application or an origin, by its name.
    Upstream(&'a str),
}

/// The rows of all workers. A copy is the same table.
#[derive(Clone, Copy, Debug)]
pub struct FigureTable {
    subjects: SharedTable,
    /// The rows of each worker, one behind the other.
    cells: &'static [AtomicU64],
}

/// A row of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row(u16);

impl Row {
    /// The row with this number, as [`number`](Self::number) has told it.
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    /// Its number, for crates that do not know figures.
    pub const fn number(self) -> u16 {
        self.0
    }
}

/// What a row says, of all workers together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figures {
    /// Requests that have begun and not ended.
    pub in_flight: u64,
    /// Bytes of bodies that were sent.
    pub body_bytes: u64,
    /// Microseconds that requests took, together.
    pub sum_us: u64,
    /// Requests that took at most [`BOUNDS_US`], and longer ones, each counted once.
    pub buckets: [u64; BUCKETS],
    /// Requests by [`CODES`], and with other statuses.
    pub codes: [u64; CODES.len() + 1],
}

impl Figures {
    /// Requests that have ended.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

/// Upper bounds of durations, in microseconds: from a file in memory to a request that a client gives up.
pub const BOUNDS_US: [u64; BUCKETS - 1] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 5_000_000, 10_000_000,
];

/// Durations within bounds, and the longer ones.
const BUCKETS: usize = 18;

/// Statuses that are counted one by one.
pub const CODES: [u16; 31] = [
    101, 200, 201, 202, 204, 206, 301, 302, 303, 304, 307, 308, 400, 401, 403, 404, 405, 408, 410, 412, 413,
    416, 421, 429, 431, 499, 500, 501, 502, 503, 504,
];

impl FigureTable {
    /// Rows, of which the last has what no other has room for.
    pub const ROWS_MAX: usize = 256;

    /// An empty table for so many workers; to be called before they are forked.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn allocate(workers: usize) -> io::Result<Self> {
        let shape = Shape { sets: 1, ways: Self::ROWS_MAX - 1, row_words: 1 };
        let cells = baton_sys::shared::shared_counters(Self::ROWS_MAX * workers * STRIDE)?;
        Ok(Self { subjects: SharedTable::allocate(shape)?, cells })
    }

    /// The row of a subject.
    pub fn row(&self, subject: Subject<'_>) -> Row {
        let row = self.subjects.claim(self.subjects.key(subject));
        row.map_or_else(Self::rest, |row| Row(row as u16))
    }

    /// Whether it is the row of all that has no row of its own.
    pub fn is_rest(row: Row) -> bool {
        row == Self::rest()
    }

    /// The row of all that has no row of its own.
    pub fn rest() -> Row {
        Row((Self::ROWS_MAX - 1) as u16)
    }

    /// What a row says, of all workers together.
    pub fn sum(&self, row: Row) -> Figures {
        let workers = self.cells.chunks(STRIDE * Self::ROWS_MAX);
        let value = |cell: usize| {
            let of_worker =
                |rows: &[AtomicU64]| rows[usize::from(row.0) * STRIDE + cell].load(Ordering::Relaxed);
            workers.clone().map(of_worker).fold(0, u64::wrapping_add)
        };
        Figures {
            in_flight: value(IN_FLIGHT),
            body_bytes: value(BODY_BYTES),
            sum_us: value(SUM_US),
            buckets: std::array::from_fn(|at| value(FIRST_BUCKET + at)),
            codes: std::array::from_fn(|at| value(FIRST_CODE + at)),
        }
    }

    /// A worker has ended, and with it the requests that it had.
    pub fn reset_gauges(&self, worker: usize) {
        for row in 0..Self::ROWS_MAX {
            self.cell(worker, row, IN_FLIGHT).store(0, Ordering::Relaxed);
        }
    }

    fn cell(&self, worker: usize, row: usize, cell: usize) -> &'static AtomicU64 {
        &self.cells[(worker * Self::ROWS_MAX + row) * STRIDE + cell]
    }
}

/// What one thread has counted since it last published.
#[derive(Debug)]
pub struct FigureTally {
    table: FigureTable,
    worker: usize,
    /// By row; it grows as rows are used.
    pending: Vec<Pending>,
    dirty: Vec<u16>,
}

#[derive(Clone, Debug)]
struct Pending {
    cells: [u64; CELLS],
    is_dirty: bool,
}

impl FigureTally {
    /// A tally that flows into the rows of this worker.
    pub fn new(table: FigureTable, worker: usize) -> Self {
        Self { table, worker, pending: Vec::new(), dirty: Vec::new() }
    }

    /// A request begins.
    pub fn begin(&mut self, row: Row) {
        let cells = self.cells(row);
        // Below zero, if the request has begun on another thread: the sum is right.
        cells[IN_FLIGHT] = cells[IN_FLIGHT].wrapping_add(1);
    }

    /// A request has ended. `status`: 0, if it is counted elsewhere.
    pub fn end(&mut self, row: Row, status: u16, duration_us: u64, body_bytes: u64) {
        let cells = self.cells(row);
        cells[IN_FLIGHT] = cells[IN_FLIGHT].wrapping_sub(1);
        if status == 0 {
            return;
        }
        cells[FIRST_BUCKET + BOUNDS_US.partition_point(|bound| *bound < duration_us)] += 1;
        cells[SUM_US] += duration_us;
        // An application that answers itself may claim any number.
        cells[BODY_BYTES] = cells[BODY_BYTES].wrapping_add(body_bytes);
        cells[FIRST_CODE + CODES.binary_search(&status).unwrap_or(CODES.len())] += 1;
    }

    /// Adds what was counted to the table.
    pub fn publish(&mut self) {
        for row in self.dirty.drain(..) {
            let row = usize::from(row);
            self.pending[row].is_dirty = false;
            for (cell, pending) in self.pending[row].cells.iter_mut().enumerate() {
                if *pending != 0 {
                    let amount = std::mem::take(pending);
                    self.table.cell(self.worker, row, cell).fetch_add(amount, Ordering::Relaxed);
                }
            }
        }
    }

    fn cells(&mut self, row: Row) -> &mut [u64; CELLS] {
        let at = usize::from(row.0);
        if self.pending.len() <= at {
            self.pending.resize(at + 1, Pending { cells: [0; CELLS], is_dirty: false });
        }
        let pending = &mut self.pending[at];
        if !std::mem::replace(&mut pending.is_dirty, true) {
            self.dirty.push(row.0);
        }
        &mut pending.cells
    }
}

const IN_FLIGHT: usize = 0;
const BODY_BYTES: usize = 1;
const SUM_US: usize = 2;
const FIRST_BUCKET: usize = 3;
const FIRST_CODE: usize = FIRST_BUCKET + BUCKETS;
const CELLS: usize = FIRST_CODE + CODES.len() + 1;

/// Cells from one row to the next: whole pairs of cache lines, so that workers do not write to the same ones.
const STRIDE: usize = CELLS.next_multiple_of(16);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_add_up_in_the_row_of_a_subject() {
        let table = FigureTable::allocate(2).unwrap();
        let [site, upstream] = [Subject::Site("a"), Subject::Upstream("a")].map(|subject| table.row(subject));
        assert_ne!(site, upstream);
        assert_eq!(table.row(Subject::Site("a")), site);
        for worker in 0..2 {
            let mut tally = FigureTally::new(table, worker);
            for (status, us) in [(200, 50), (404, 51), (299, 20_000_000)] {
                tally.begin(site);
                tally.end(site, status, us, 7);
            }
            tally.begin(site);
            tally.publish();
        }
        let figures = table.sum(site);
        assert_eq!((figures.in_flight, figures.body_bytes, figures.sum_us), (2, 42, 40_000_202));
        assert_eq!((figures.buckets[0], figures.buckets[1], figures.buckets[BUCKETS - 1]), (2, 2, 2));
        assert_eq!(figures.buckets.iter().sum::<u64>(), figures.codes.iter().sum::<u64>());
        assert_eq!((figures.codes[1], figures.codes[CODES.len()]), (2, 2));
        table.reset_gauges(0);
        assert_eq!(table.sum(site).in_flight, 1);
        assert_eq!(table.sum(upstream).codes, [0; CODES.len() + 1]);
    }

    /// Names without end cost no more rows than there are.
    #[test]
    fn what_has_no_room_is_counted_together() {
        let table = FigureTable::allocate(1).unwrap();
        let rows: Vec<_> = (0..1000).map(|n| table.row(Subject::Site(&n.to_string()))).collect();
        assert_eq!(rows.iter().filter(|row| FigureTable::is_rest(**row)).count(), 1000 - 255);
        assert!(CODES.is_sorted() && BOUNDS_US.is_sorted());
    }
}
