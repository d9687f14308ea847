//! Whether a loop interrupts the applications that it waits for.
//!
//! A thread that wakes up usually gets its CPU at once, from whoever has used it for longer. For a loop this is right as long
//! as somebody waits for it. But when a process of an application computes, and what the loop is woken for is a piece of its
//! response, or a request that has to wait for it anyway, then the process is interrupted for nothing: two switches, an
//! interrupt from another CPU, in virtual machines an exit from the guest. The gateway finds out where that matters.

use baton_sys::process;

/// The loop's thread, as the scheduler sees it.
#[derive(Debug, Default)]
pub(crate) struct Deference {
    is_on: bool,
    /// Nobody may change how this thread is scheduled, or somebody else has.
    is_forbidden: bool,
}

impl Deference {
    /// Lets others finish from now on, or not.
    pub(crate) fn set(&mut self, wanted: bool) {
        if wanted == self.is_on || self.is_forbidden {
            return;
        }
        self.is_forbidden = process::let_others_finish(wanted).is_err();
        self.is_on = wanted && !self.is_forbidden;
    }

    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_somebody_else_has_chosen_stays() {
        let chosen = std::thread::spawn(|| {
            process::let_others_finish(true).unwrap();
            let mut deference = Deference::default();
            deference.set(true);
            assert!(!deference.is_on());
            deference.set(false);
            process::let_others_finish(false).expect("it is as it was");
            deference.set(true);
            assert!(!deference.is_on(), "it does not try again");
        });
        chosen.join().unwrap();
    }
}
