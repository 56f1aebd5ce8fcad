//! `longhaul doctor`: prints what the checks of the installation found.

use longhaul_doctor::{Finding, check_home};

use crate::args::{DoctorOptions, GlobalArgs};
use crate::exit;
use crate::output::{print, sanitize};

pub(crate) async fn run(globals: &GlobalArgs, options: &DoctorOptions) -> anyhow::Result<u8> {
    let findings = run_checks(globals).await?;
    let code = if findings.iter().all(|finding| finding.ok) { exit::DONE } else { exit::FAILED };
    print(options.json, || &findings, || findings.iter().map(line).collect())?;
    Ok(code)
}

pub(crate) async fn run_checks(globals: &GlobalArgs) -> anyhow::Result<Vec<Finding>> {
    Ok(check_home(&globals.home_dir()?, &globals.sources()?).await)
}

/// A finding as a line, with what to do below it.
pub(crate) fn line(finding: &Finding) -> String {
    let mark = if finding.ok { "✓" } else { "✗" };
    // Programs know the check under its older name.
    let check = if finding.check == "keepers" { "tasks" } else { finding.check };
    let to_do = finding.to_do.as_ref().map(|to_do| format!("\n{:11}→ {to_do}", "")).unwrap_or_default();
    sanitize(&format!("{mark} {check:<8} {}{to_do}", finding.found))
}
