//! Files that servers read without asking; see `crates/direct`.

use super::Dataset;
use offshoot_direct::Table;
use offshoot_types::Ino;
use std::sync::Arc;

impl Dataset {
    /// From now on files can be read by this table, or (none) no longer. MUST NOT be called for a dataset whose writes
    /// are gathered on the way here: what a client wrote would not be what it reads.
    pub fn serve_directly(&self, table: Option<Arc<Table>>) {
        *self.direct.write() = table;
        // What was read by an earlier one is not any more.
        self.inodes.for_each(|inode| inode.state.write().direct = None);
    }

    /// A server asks for a file to be read directly; whether it is now.
    pub fn read_directly(&self, ino: Ino) -> bool {
        // Held to the end: a table that is given up meanwhile is so afterwards.
        let table = self.direct.read();
        let (Some(table), Ok(inode)) = (&*table, self.inode(ino)) else { return false };
        if inode.expect_file().is_err() {
            return false;
        }
        let mut state = inode.state.write();
        if !state.gone && state.direct.is_none() {
            state.direct = table.file(ino.0, state.size).map(Arc::new);
        }
        state.direct.is_some()
    }
}
