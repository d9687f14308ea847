//! Which directives hold at a place: those of its block, else those of the blocks around it.

use crate::tree::Directive;

/// The blocks around a place, the outermost first.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope<'t> {
    blocks: Vec<&'t [Directive]>,
}

impl<'t> Scope<'t> {
    pub(super) fn of(block: &'t [Directive]) -> Self {
        Self { blocks: vec![block] }
    }

    /// The scope of a block within it.
    pub(super) fn within(&self, block: &'t [Directive]) -> Self {
        let mut blocks = self.blocks.clone();
        blocks.push(block);
        Self { blocks }
    }

    pub(super) fn innermost(&self) -> &'t [Directive] {
        self.blocks.last().copied().unwrap_or_default()
    }

    /// The last directive of this name in the innermost block that has one.
    pub(super) fn find(&self, name: &str) -> Option<&'t Directive> {
        self.all(&[name]).last().copied()
    }

    /// The directives of these names in the innermost block that has one.
    pub(super) fn all(&self, names: &[&str]) -> Vec<&'t Directive> {
        let of = |block: &'t [Directive]| block.iter().filter(|directive| names.contains(&&*directive.name));
        let innermost = self.blocks.iter().rev().find(|block| of(block).next().is_some());
        innermost.map(|block| of(block).collect()).unwrap_or_default()
    }

    /// The directives of this name in all blocks, of which none takes the place of another.
    pub(super) fn each(&self, name: &str) -> Vec<&'t Directive> {
        self.blocks.iter().flat_map(|block| block.iter().filter(|directive| directive.name == name)).collect()
    }

    /// The argument of a directive that has one.
    pub(super) fn word(&self, name: &str) -> Option<&'t str> {
        self.find(name)?.arguments.first().map(String::as_str)
    }
}
