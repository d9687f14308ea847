//! Interleaved rounds of all servers, and their results.
//!
//! In every round every server is measured once, in an order that rotates from round to round, and only figures of
//! one round are compared, since a machine drifts. A cell in which other processes used the CPUs is measured again; a
//! cell with a single wrong answer has failed.

mod cell;
mod sum;

use std::time::Duration;

use anyhow::Result;

use crate::rig::Machine;
#[cfg(test)]
pub(crate) use cell::Outcome;
pub(crate) use cell::{Cell, CellLoad, Contender, Figures, Task};
pub(crate) use sum::{Measured, Sum, distinct};

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
        mut done: impl FnMut(Cell<T>) -> Result<()>,
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
        for round in 0..self.count {
            for turn in 0..contenders.len() {
                let contender = &contenders[(round + turn) % contenders.len()];
                let mut cell = Cell::measure(contender, machine, &load, round);
                for _ in 0..REPEATS_MAX {
                    if !cell.is_disturbed() {
                        break;
                    }
                    std::thread::sleep(PAUSE);
                    let again = Cell::measure(contender, machine, &load, round);
                    cell = again.with_memory_of(&cell);
                }
                done(cell)?;
            }
        }
        Ok(())
    }
}

/// What disturbed a cell gets this long to pass.
const PAUSE: Duration = Duration::from_millis(500);
const WARM_UP: Duration = Duration::from_millis(300);
/// How often a cell that others disturbed is measured again.
const REPEATS_MAX: usize = 2;
