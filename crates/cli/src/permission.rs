//! The permission mode that the user chose on the command line.

use longhaul_agent::Session;

use crate::args::GlobalArgs;

/// Sets the mode of `--permission` for a session, unless the session has it. It goes into the inbox before the next input, so that it holds
/// wherever the session runs.
pub(crate) async fn set_flagged_mode(globals: &GlobalArgs, session: &Session) -> anyhow::Result<()> {
    if let Some(mode) = globals.permission
        && session.state().await?.permission.mode != Some(mode)
    {
        session.set_permission_mode(mode).await?;
    }
    Ok(())
}
