//! placeholder
use crate::worker::Process;
use std::io;
pub(super) fn serve(process: &Process) -> io::Result<()> {
    super::sped::serve(process)
}
