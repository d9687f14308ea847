//! What the head of an origin's response means for an object: parts of one version go on, another version begins anew.

use std::ops::Range;

use super::events::{Action, Answer, CutReason, FillId, Version};
use super::machine::{Filling, Stored};
use super::parts::FillState;

impl Filling {
    /// The head of a fill's response.
    pub fn handle_answer(&mut self, id: FillId, answer: Answer, stored: Stored<'_>) {
        let Some(fill) = self.fills.iter_mut().find(|fill| fill.id == id) else { return };
        fill.state = FillState::Flows;
        match answer {
            Answer::Partial { bytes, version } if self.is_same(version) => {
                self.learn(version);
                self.begin_part(id, &bytes);
            }
            Answer::Whole(version) if self.is_same(version) => {
                let asked = self.fills.iter().find(|fill| fill.id == id).map_or(0, |fill| fill.at);
                self.ignores_ranges |= asked > 0;
                self.learn(version);
                self.restart(id);
            }
            Answer::Whole(version) => self.change(Some((id, version))),
            Answer::Partial { .. } | Answer::NotSatisfiable => {
                self.actions.push_back(Action::Close(id));
                self.change(None);
            }
            Answer::NotStored => {
                self.close(id);
                self.give_up();
            }
            Answer::Broken | Answer::Failed => {
                self.close(id);
                self.give_up_on(id);
            }
        }
        self.provide(stored);
        self.settle(stored);
    }

    fn is_same(&self, version: Version) -> bool {
        let lengths = (self.version.length, version.length);
        let same_length = !matches!(lengths, (Some(ours), Some(theirs)) if ours != theirs);
        let same_tag = self.version.validator == version.validator;
        // Without a tag nothing tells that what is here and what comes belong together.
        !self.is_known || (same_length && same_tag && version.validator.is_some())
    }

    fn learn(&mut self, version: Version) {
        if !self.is_known {
            self.is_known = true;
            self.version = version;
            self.actions.push_back(Action::NewVersion(version));
        } else if self.version.length.is_none()
            && let Some(length) = version.length
        {
            self.version.length = Some(length);
            self.actions.push_back(Action::Length(length));
        }
        let Some(blocks) = self.blocks() else { return };
        for fill in &mut self.fills {
            fill.end = Some(fill.end.map_or(blocks, |end| end.min(blocks)));
            fill.asked_end = Some(fill.asked_end.map_or(blocks, |end| end.min(blocks)));
        }
    }

    /// A part begins where it was asked for, and may be shorter.
    fn begin_part(&mut self, id: FillId, bytes: &Range<u64>) {
        let (layout, length) = (self.layout, self.version.length);
        let Some(fill) = self.fills.iter_mut().find(|fill| fill.id == id) else { return };
        // A block that is cut off is asked for again.
        let whole =
            if Some(bytes.end) == length { layout.blocks_in(bytes.end) } else { layout.block_of(bytes.end) };
        // A part without a whole block would be asked for again and again.
        if bytes.start != layout.bytes_of(fill.at, None).start || whole <= fill.at {
            self.close(id);
            self.give_up_on(id);
            return;
        }
        fill.end = Some(fill.end.map_or(whole, |end| end.min(whole)));
        fill.asked_end = Some(whole);
    }

    /// A whole response begins with block 0, whatever was asked for.
    fn restart(&mut self, id: FillId) {
        let blocks = self.blocks();
        if let Some(fill) = self.fills.iter_mut().find(|fill| fill.id == id) {
            (fill.at, fill.end, fill.asked_end) = (0, blocks, blocks);
        }
        if self.ignores_ranges {
            // One response brings all; another one would bring all again.
            for reader in self.readers.iter_mut().filter(|reader| reader.fill.is_some()) {
                reader.fill = Some(id);
            }
            let others: Vec<_> = self.fills.iter().map(|fill| fill.id).filter(|other| *other != id).collect();
            for other in others {
                self.drop_fill(other);
            }
        }
    }

    /// The object is another one now; `whole` is the fill that brings it.
    fn change(&mut self, whole: Option<(FillId, Version)>) {
        let kept = whole.map(|(id, _)| id);
        let others: Vec<_> = self.fills.iter().map(|fill| fill.id).filter(|id| Some(*id) != kept).collect();
        for other in others {
            self.drop_fill(other);
        }
        (self.is_known, self.ignores_ranges) = (false, false);
        self.version = Version::default();
        if let Some((id, version)) = whole {
            self.learn(version);
            self.restart(id);
            // Those who begin anew find it.
            let ahead = self.settings.ahead_blocks;
            if let Some(fill) = self.fills.iter_mut().find(|fill| fill.id == id) {
                fill.last.clear();
                fill.finish_to = ahead;
            }
        } else {
            self.actions.push_back(Action::NewVersion(Version::default()));
        }
        // They begin anew when the old blocks are gone.
        for reader in std::mem::take(&mut self.readers) {
            self.actions.push_back(match reader.began {
                true => Action::Cut { reader: reader.id, reason: CutReason::Changed },
                false => Action::Again(reader.id),
            });
        }
    }

    /// Nothing is stored: all who wait get their own responses.
    fn give_up(&mut self) {
        let waiting: Vec<_> =
            self.readers.iter().filter(|reader| reader.waits).map(|reader| reader.id).collect();
        for id in waiting {
            self.give_up_reader(id);
        }
    }
}
