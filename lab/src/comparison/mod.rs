//! Interleaved rounds of all servers, and their results.
//!
//! In every round every server is measured once, in an order that rotates from round to round, and only figures of
//! one round are compared, since a machine drifts. A cell in which other processes used the CPUs is measured again; a
//! cell with a single wrong answer has failed.

mod cell;
mod meter;
mod sum;
mod table;

use std::time::Duration;

use anyhow::Result;

use crate::rig::Machine;
#[cfg(test)]
pub(crate) use cell::Outcome;
pub(crate) use cell::{Cell, CellLoad, FOREIGN_MAX, Figures, Task};
pub(crate) use meter::{Contender, Meter};
pub(crate) use sum::{Measured, Sum, distinct};
pub(crate) use table::markdown;

/// How long and how often.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounds {
    pub(crate) count: usize,
    pub(crate) duration: Duration,
    /// The client sleeps when it has nothing to do.
    pub(crate) sleep: bool,
}

impl Rounds {
    /// Measures the task on all contenders, and passes each cell on as soon as it is done.
    pub(crate) fn measure<T: Task>(
        self,
        task: T,
        contenders: &[Contender],
        machine: &Machine,
        done: impl FnMut(Cell<T>) -> Result<()>,
    ) -> Result<()> {
        let load = CellLoad {
            task,
            duration: self.duration,
            sleep: self.sleep,
            idle_connections: task.idle_connections(),
        };
        for contender in contenders {
            // Caches fill and connections are accepted for the first time. Idle connections come later: servers
            // seldom return the memory for them, so only the first of them show its amount.
            let warm_up = CellLoad { duration: WARM_UP, idle_connections: 0, ..load };
            let _ = Cell::measure(contender, machine, &warm_up, 0);
        }
        interleave(
            self.count,
            contenders,
            |contender, round| Cell::measure(contender, machine, &load, round),
            done,
        )
    }
}

/// Measures each contender once in every round, and passes each cell on as soon as it is done.
pub(crate) fn interleave<T>(
    rounds: usize,
    contenders: &[Contender],
    measure: impl Fn(&Contender, usize) -> Cell<T>,
    mut done: impl FnMut(Cell<T>) -> Result<()>,
) -> Result<()> {
    for round in 0..rounds {
        for turn in 0..contenders.len() {
            let contender = &contenders[(round + turn) % contenders.len()];
            let mut cell = measure(contender, round);
            for _ in 0..REPEATS_MAX {
                if !cell.is_disturbed() {
                    break;
                }
                std::thread::sleep(PAUSE);
                cell = measure(contender, round).with_memory_of(&cell);
            }
            done(cell)?;
        }
    }
    Ok(())
}

/// What disturbed a cell gets this long to pass.
const PAUSE: Duration = Duration::from_millis(500);
const WARM_UP: Duration = Duration::from_millis(300);
/// How often a cell that others disturbed is measured again.
const REPEATS_MAX: usize = 2;
