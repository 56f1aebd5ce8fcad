//! The protected paths by name, in lists that are separated by white space. A path that is missing on a machine is skipped.

/// Keys of the system.
pub(super) const SYSTEM_KEYS: &str = "
    /etc/gshadow /etc/gshadow- /etc/pki/tls/private /etc/shadow /etc/shadow- /etc/ssh /etc/ssl/private
    /etc/sudoers /etc/sudoers.d
";

/// Folders in which the system's services keep their sockets and secrets.
pub(super) const SOCKETS: &str = "
    /run /var/run /var/lib/containerd /var/lib/docker /var/lib/incus /var/lib/lxd /var/lib/mysql
    /var/snap/lxd
";

/// Variables that name the socket of an agent or daemon that acts for the user.
pub(super) const SOCKET_VARIABLES: &str = "SSH_AUTH_SOCK DOCKER_HOST CONTAINER_HOST";

/// In the user's home folder: where programs have sockets that act for the user.
pub(super) const HOME_SOCKETS: &str = "
    .1password .bitwarden-ssh-agent.sock .colima .emacs.d/server .lima .local/run
    .local/share/containers/podman/machine .orbstack/run .rd .screen
";

/// In the user's home folder: keys, credentials, sockets of the programs that hold them, and shell histories.
pub(super) const KEYS: &str = "
    .ICEauthority .Xauthority .age .aws .azure .bash_history .bitcoin .boto .cache/huggingface/stored_tokens
    .cache/huggingface/token .cargo/credentials .cargo/credentials.toml .circleci .claude/.credentials.json
    .cloudflared .codex/auth.json .composer/auth.json .conan2/credentials.json .config/.wrangler
    .config/BraveSoftware .config/Code/User/globalStorage .config/NuGet .config/Slack .config/age
    .config/chromium .config/composer/auth.json .config/configstore .config/containers/auth.json
    .config/dart/pub-credentials.json .config/doctl .config/gcloud .config/gh .config/git/credentials
    .config/github-copilot .config/glab-cli .config/google-chrome .config/hcloud .config/heroku .config/hub
    .config/lxd .config/microsoft-edge .config/netlify .config/ngrok .config/op .config/pypoetry/auth.toml
    .config/rclone .config/sentry .config/solana .config/sops .config/stripe .config/vivaldi .databrickscfg
    .docker .electrum .ethereum .fetchmailrc .fly .gem/credentials .gemini/oauth_creds.json .git-credentials
    .gnupg .hex/hex.config .history .huggingface .irb_history .ivy2/.credentials .julia/servers .kaggle
    .kube .local/share/atuin .local/share/fish/fish_history .local/share/gem/credentials
    .local/share/keyrings .local/share/opencode/auth.json .local/share/uv/credentials
    .local/share/zsh/history .local/state/bash .m2/settings-security.xml .m2/settings.xml .minikube .mongosh
    .mozilla .msmtprc .my.cnf .mylogin.cnf .mysql_history .netlify .netrc .node_repl_history
    .nuget/NuGet/NuGet.Config .oci .password-store .pgpass .psql_history .pub-cache/credentials.json
    .pulumi/credentials.json .pypirc .python_history .rclone.conf .rediscli_history .s3cfg .sbt/.credentials
    .sentryclirc .snowflake .snowsql .sqlite_history .ssh .stack/upload .subversion/auth .terraform.d
    .terraformrc .thunderbird .tsh .vault-token .viminfo .wrangler .zsh_history
";

/// Credentials in cargo's home, which `CARGO_HOME` may move.
pub(super) const CARGO_KEYS: &str = "credentials credentials.toml";

/// Files with keys that programs insist on opening. For commands they read as empty.
pub(super) const EMPTIED: &str = "
    .bundle/config .config/pip/pip.conf .config/pnpm/rc .gradle/gradle.properties .npmrc .pip/pip.conf
    .yarnrc.yml
";

/// Variables that name a file to read as empty.
pub(super) const EMPTIED_VARIABLES: &str = "NPM_CONFIG_USERCONFIG npm_config_userconfig";

/// In the user's home folder: what the shell, the desktop, the login or another program of the user runs later, outside of any
/// sandbox. It may be read. Commands can't write it, and the file tools ask before they do.
pub(super) const STARTUP: &str = "
    .Rprofile .Xresources .Xsession .agents .aliases .asdf .bash_aliases .bash_completion .bash_it .bash_login
    .bash_logout .bash_profile .bashrc .bashrc.d .bun/bin .cargo/bin .cargo/config .cargo/config.toml
    .cargo/env .claude .codex .config/Code/User .config/Cursor/User .config/VSCodium/User .config/autostart
    .config/autostart-scripts .config/awesome .config/bspwm .config/direnv .config/emacs
    .config/environment.d .config/fish .config/gdb .config/git .config/helix .config/hypr .config/i3
    .config/nushell .config/nvim .config/openbox .config/opencode .config/plasma-workspace
    .config/powershell .config/qtile .config/starship.toml .config/sway .config/sxhkd .config/systemd
    .config/tmux .config/user-tmpfiles.d .config/zed .config/zsh .cshrc .cursor .cursor-server .deno/bin
    .direnvrc .emacs .emacs.d .envrc .exrc .forward .fzf .fzf.bash .fzf.zsh .gdbinit .gemini .ghci
    .gitconfig .gradle/init.d .gradle/init.gradle .hgrc .hushlogin .iex.exs .inputrc .ipython .irbrc
    .julia/config .jupyter .kshrc .lessfilter .lldbinit .local/bin .local/lib .local/share/applications
    .local/share/bash-completion .local/share/dbus-1 .local/share/nvim .local/share/systemd
    .local/share/zinit .login .logout .mkshrc .nodenv .npm-global/bin .nvm .ocamlinit .oh-my-zsh
    .opam/opam-init .openbox .p10k .p10k.zsh .pam_environment .procmailrc .profile .pryrc .psqlrc .pyenv
    .pythonrc .rbenv .rvm .screenrc .sdkman .sqliterc .ssh/authorized_keys .ssh/config .ssh/rc .tcshrc
    .tmux.conf .vim .vimrc .vscode .vscode-oss .vscode-server .windsurf .xinitrc .xmonad .xonshrc .xprofile
    .xsession .xsessionrc .zinit .zlogin .zlogout .zprofile .zshenv .zshrc bin go/bin
";

/// Startup files that a command could make where they are missing, and the text of a file that changes nothing in their place; without
/// one, an empty folder. Not among them are files whose mere presence changes something, such as `.xsession`, `.vimrc` and `.inputrc`.
pub(super) const PLACEHOLDERS: &[(&str, Option<&str>)] = &[
    (".bash_aliases", Some("")),
    (".bash_login", Some("[ ! -f ~/.profile ] || . ~/.profile\n")),
    (".bash_logout", Some("")),
    // bash reads the first of these two and `.profile`.
    (".bash_profile", Some("[ ! -f ~/.bash_login ] || . ~/.bash_login\n")),
    (".bashrc", Some("")),
    (".config/autostart", None),
    (".config/environment.d", None),
    (".config/fish", None),
    (".config/git", None),
    (".config/systemd", None),
    (".gitconfig", Some("")),
    (".local/bin", None),
    (".pam_environment", Some("")),
    (".profile", Some("")),
    (".ssh", None),
    (".xprofile", Some("")),
    (".xsessionrc", Some("")),
    (".zlogin", Some("")),
    (".zlogout", Some("")),
    (".zprofile", Some("")),
    (".zshenv", Some("")),
    (".zshrc", Some("")),
    ("bin", None),
];

/// Names that begin with this folder are protected in `XDG_CONFIG_HOME`, too, where that is not `~/.config`.
pub(super) const CONFIG_FOLDER: &str = ".config/";

/// Crontabs and login scripts of the system, where the user may write them.
pub(super) const SYSTEM_STARTUP: &str = "
    /etc/cron.d /etc/crontab /etc/environment /etc/init.d /etc/ld.so.preload /etc/profile /etc/profile.d
    /etc/rc.local /etc/systemd /etc/xdg/autostart /var/spool/cron
";
