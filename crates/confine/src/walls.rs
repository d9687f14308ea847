//! Landlock: where a process may write, whether it may start programs, whom it may signal and trace.
//!
//! Landlock only lists what is allowed, is inherited, and cannot be widened later. So nothing here depends on what a
//! reload may add, but for the folders of temporary files.

use std::path::PathBuf;

use landlock::{
    AccessFs, BitFlags, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError,
    Scope, make_bitflags, path_beneath_rules,
};

use crate::table::{Rule, Writes};

/// What changes files and folders.
const CHANGES: BitFlags<AccessFs> = make_bitflags!(AccessFs::{
    WriteFile | RemoveDir | RemoveFile | MakeChar | MakeDir | MakeReg | MakeSock | MakeFifo | MakeBlock | MakeSym | Refer
        | Truncate
});

/// Has the kernel enforce the rule, as far as it can.
pub(crate) fn build(rule: &Rule, writes: &[PathBuf]) -> Result<(), RulesetError> {
    let mut handled = BitFlags::EMPTY;
    if !rule.may_execute {
        handled |= AccessFs::Execute;
    }
    if rule.writes == Writes::Named {
        handled |= CHANGES;
    }
    if handled.is_empty() && rule.may_signal_others {
        return Ok(());
    }
    let mut rules = Ruleset::default().set_compatibility(CompatLevel::BestEffort);
    if !handled.is_empty() {
        rules = rules.handle_access(handled)?;
    }
    if !rule.may_signal_others {
        // Tracing needs no word of its own: no process inside may trace one outside.
        rules = rules.scope(Scope::Signal)?;
    }
    let mut rules = rules.create()?;
    if rule.writes == Writes::Named {
        rules = rules.add_rules(path_beneath_rules(writes, CHANGES))?;
    }
    rules.restrict_self()?;
    Ok(())
}

/// What this kernel lacks, for the log.
pub(crate) fn gap() -> Option<&'static str> {
    let has_files = || {
        let rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        rules.handle_access(CHANGES | AccessFs::Execute)?.create()
    };
    let has_signals = || {
        let rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        rules.scope(Scope::Signal)?.create()
    };
    if has_files().is_err() {
        return Some(
            "this kernel has no Landlock, or an old one (Linux 6.2 is needed): a worker that is taken over could write \
             wherever its user may, and signal processes of its user",
        );
    }
    has_signals().is_err().then_some(
        "this kernel's Landlock has no rules for signals (Linux 6.12 has): a worker that is taken over could signal \
         processes of its user",
    )
}
