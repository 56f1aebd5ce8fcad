//! `/mode`, and Shift-Tab, which is `/mode next`.

use longhaul_protocol::PermissionMode;

use super::CommandContext;

/// The argument with which the mode after the present one is chosen.
pub(crate) const NEXT: &str = "next";

/// `/mode [MODE]`. The event of the change says what the mode means.
pub(super) async fn run(context: &mut CommandContext<'_>, arguments: &str) -> anyhow::Result<()> {
    let current = match *context.mode {
        Some(mode) => mode,
        None => {
            let own = context.session.state().await?.permission.mode;
            own.unwrap_or(context.config.settings.approval.mode)
        }
    };
    let chosen = match arguments {
        "" => {
            let all = PermissionMode::ALL.map(PermissionMode::name).join(", ");
            context
                .printer
                .note(format!("the mode is {current}; the modes are {all}, and Shift-Tab goes through them"));
            return Ok(());
        }
        NEXT => current.next(),
        name => name.parse::<PermissionMode>()?,
    };
    if chosen == current {
        context.printer.note(format!("the mode is {current} already"));
        return Ok(());
    }
    context.session.set_permission_mode(chosen).await?;
    *context.mode = Some(chosen);
    Ok(())
}
