//! The limits of a tree of subagents: how many there may be, and how many at once.
//!
//! Each subagent is admitted by a record of the stream `tree/<root>`, appended with the head that the decision rests on. So two
//! processes can't both take the last place.

use std::collections::HashSet;

use longhaul_journal::{Append, Error as JournalError, Journal, records};
use longhaul_protocol::{ChildAdmitted, ChildReleased, SessionId, StreamName, TreeRecord};

use super::child::is_child_active;
use crate::Result;
use crate::config::AgentsSettings;

/// Whether a subagent may start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Admission {
    Granted,
    /// As many run as may run at once. Try again later.
    Full,
    /// The tree has had as many as it may ever have.
    Exhausted,
}

/// The subagents of a tree, by its records. Pure.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TreeFold {
    head: u64,
    admitted: Vec<ChildAdmitted>,
    released: HashSet<SessionId>,
}

impl TreeFold {
    fn apply(&mut self, record: TreeRecord) {
        match record {
            TreeRecord::Admitted(admitted) => self.admitted.push(admitted),
            TreeRecord::Released(released) => drop(self.released.insert(released.session)),
            TreeRecord::Unknown { .. } => {}
        }
    }

    /// The subagents that were started or are about to, the oldest first.
    pub(crate) fn children(&self) -> impl Iterator<Item = &ChildAdmitted> {
        self.admitted.iter().filter(|child| !self.released.contains(&child.session))
    }

    /// Whether it has this subagent.
    pub(crate) fn has(&self, session: SessionId) -> bool {
        self.children().any(|child| child.session == session)
    }
}

/// Reads the subagents of the tree below a session.
pub(crate) async fn read_tree(journal: &dyn Journal, root: SessionId) -> longhaul_journal::Result<TreeFold> {
    let mut fold = TreeFold::default();
    let stream = StreamName::tree(root);
    let mut cursor = records(journal, &stream, 1);
    while let Some(record) = cursor.next().await? {
        fold.head = record.seq;
        if let Ok(decoded) = TreeRecord::decode(&record) {
            fold.apply(decoded);
        }
    }
    Ok(fold)
}

/// Admits a subagent to a tree, once. `ancestors` wait for it, so they do not count as running.
pub(super) async fn admit(
    journal: &dyn Journal,
    root: SessionId,
    child: &ChildAdmitted,
    ancestors: &[SessionId],
    limits: &AgentsSettings,
) -> Result<Admission> {
    loop {
        let tree = read_tree(journal, root).await?;
        if tree.has(child.session) {
            return Ok(Admission::Granted);
        }
        if tree.children().count() as u64 >= limits.per_tree {
            return Ok(Admission::Exhausted);
        }
        let mut active = 0;
        for other in tree.children().filter(|other| !ancestors.contains(&other.session)) {
            active += u64::from(is_child_active(journal, other.session).await?);
        }
        if active >= limits.at_once {
            return Ok(Admission::Full);
        }
        let record =
            TreeRecord::Admitted(child.clone()).encode().with_key(&ChildAdmitted::key(child.session));
        match journal.append(Append::to(&StreamName::tree(root)).expecting(tree.head).record(record)).await {
            Ok(_) | Err(JournalError::Duplicate { .. }) => return Ok(Admission::Granted),
            Err(JournalError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Releases the place of a subagent that was admitted and will not start.
pub(super) async fn release(journal: &dyn Journal, root: SessionId, child: SessionId) -> Result<()> {
    if !read_tree(journal, root).await?.has(child) {
        return Ok(());
    }
    let record = TreeRecord::Released(ChildReleased { session: child }).encode();
    let record = record.with_key(&ChildReleased::key(child));
    match journal.append(Append::to(&StreamName::tree(root)).record(record)).await {
        Ok(_) | Err(JournalError::Duplicate { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
