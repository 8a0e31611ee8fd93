"""Places of a machine that no confined command may see: data, each with its reason. Pure.

A place is hidden whole where its owner keeps little else there, so that a new version of the owner which writes its
secret into another file is covered too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

AT_HOME: Mapping[str, tuple[str, ...]] = {
    "private keys": (".ssh", ".gnupg", ".pki", ".age", ".config/age", ".config/sops", ".putty"),
    "keys of clouds": (
        *(".aws", ".azure", ".config/gcloud", ".boto", ".s3cfg", ".oci", ".aliyun", ".bluemix", ".config/doctl"),
        *(".config/rclone", ".config/hcloud", ".config/linode-cli", ".config/heroku", ".local/share/heroku", ".fly"),
        *(".config/netlify", ".netlify", ".config/vercel", ".local/share/com.vercel.cli", ".wrangler"),
    ),
    "keys of clusters and containers": (
        *(".kube", ".docker/config.json", ".docker/run", ".config/containers/auth.json", ".config/helm", ".minikube"),
        *(".terraformrc", ".terraform.d", ".vault-token", ".pulumi/credentials.json", ".ray"),
    ),
    "keys of forges": (
        *(".config/gh", ".config/hub", ".config/glab-cli", ".git-credentials", ".config/git/credentials"),
        *(".config/tea", ".subversion/auth"),
    ),
    "keys of package registries": (
        *(".npmrc", ".yarnrc", ".yarnrc.yml", ".config/npm", ".pypirc", ".pip/pip.conf", ".config/pip/pip.conf"),
        *(".config/pypoetry/auth.toml", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials"),
        *(".bundle/config", ".m2/settings.xml", ".m2/settings-security.xml", ".gradle/gradle.properties"),
        *(".composer/auth.json", ".config/composer/auth.json", ".nuget/NuGet", ".config/NuGet", ".condarc", ".hex"),
        *(".huggingface", ".cache/huggingface/token", ".cache/huggingface/stored_tokens", ".kaggle"),
    ),
    "passwords of servers": (".netrc", "_netrc", ".authinfo", ".authinfo.gpg", ".pgpass", ".my.cnf", ".mylogin.cnf"),
    "keys of models and of other agents": (
        *(".claude", ".claude.json", ".codex", ".gemini", ".config/anthropic", ".anthropic", ".config/openai"),
        *(".config/github-copilot", ".local/share/opencode", ".aider.conf.yml", ".config/goose", ".continue"),
    ),
    "stores of passwords": (
        *(".password-store", ".local/share/keyrings", ".local/share/kwalletd", ".config/op", ".config/1Password"),
        *(".1password", ".config/Bitwarden", ".config/keepassxc", ".cache/keepassxc", "Library/Keychains"),
    ),
    "cookies and passwords of browsers and mail": (
        *(".mozilla", ".thunderbird", ".config/google-chrome", ".config/google-chrome-beta", ".config/chromium"),
        *(".config/BraveSoftware", ".config/microsoft-edge", ".config/vivaldi", ".config/opera", ".var/app", "snap"),
        *("Library/Application Support/Google", "Library/Application Support/Firefox", "Library/Cookies"),
        *("Library/Application Support/BraveSoftware", "Library/Safari", "Library/Mail", "Library/Messages"),
    ),
    "what was typed before, passwords too": (
        *(".bash_history", ".zsh_history", ".zsh_sessions", ".histfile", ".sh_history", ".local/share/fish"),
        *(".python_history", ".node_repl_history", ".psql_history", ".mysql_history", ".sqlite_history"),
        *(".rediscli_history", ".lesshst", ".viminfo", ".local/share/nvim/shada", ".local/state/nvim/shada"),
    ),
    "the user's screen": (".Xauthority", ".ICEauthority"),
}
"""By reason: paths below the user's home."""

OF_SYSTEM: Mapping[str, tuple[str, ...]] = {
    "full power over the machine": (
        *("/run/docker.sock", "/run/podman", "/run/containerd", "/run/crio", "/run/k3s", "/run/libvirt"),
        *("/run/snapd.socket", "/run/lxd", "/var/lib/lxd", "/var/snap/lxd", "/run/incus", "/run/systemd/private"),
        *("/run/dbus", "/run/cups", "/run/screen", "/run/tmux"),
    ),
    "passwords of the machine": ("/etc/shadow", "/etc/gshadow", "/etc/sudoers.d", "/etc/krb5.keytab"),
    "secrets of the container": ("/run/secrets", "/var/run/secrets"),
    "the user's screen": ("/tmp/.X11-unix", "/tmp/.ICE-unix"),
    "sockets and temporary files of Ray": ("/tmp/ray",),
}
"""By reason: paths of the machine."""

BY_VARIABLE: Mapping[str, tuple[str, ...]] = {
    "private keys": ("SSH_AUTH_SOCK", "GNUPGHOME", "SOPS_AGE_KEY_FILE"),
    "keys of clouds": (
        *("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AZURE_CONFIG_DIR"),
        *("CLOUDSDK_CONFIG", "GOOGLE_APPLICATION_CREDENTIALS", "BOTO_CONFIG", "RCLONE_CONFIG"),
    ),
    "keys of clusters and containers": ("KUBECONFIG", "DOCKER_CONFIG", "VAULT_TOKEN_PATH", "RAY_AUTH_TOKEN_PATH"),
    "keys of forges": ("GH_CONFIG_DIR", "GLAB_CONFIG_DIR"),
    "keys of package registries": ("NPM_CONFIG_USERCONFIG", "PIP_CONFIG_FILE", "HF_TOKEN_PATH"),
    "passwords of servers": ("NETRC", "PGPASSFILE"),
    "keys of models and of other agents": ("CLAUDE_CONFIG_DIR", "CODEX_HOME"),
    "what was typed before, passwords too": ("HISTFILE",),
    "the user's screen": ("XAUTHORITY",),
    "sockets of the user's session": ("XDG_RUNTIME_DIR",),
}
"""By reason: variables of the launching shell that name such a place, or several with `:` between them."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What the launching shell knows.

    environ    its environment
    retinue    folders of ours: the state of all runs, and of the clusters
    """

    environ: Mapping[str, str]
    home: Path
    uid: int
    retinue: tuple[Path, ...]


def private_places(machine: Machine) -> tuple[Path, ...]:
    """All of them, whether they are there or not; each once."""
    return tuple(dict.fromkeys(_all(machine)))


def _all(machine: Machine) -> Iterator[Path]:
    yield from machine.retinue
    yield from (machine.home / place for places in AT_HOME.values() for place in places)
    yield from (Path(place) for places in OF_SYSTEM.values() for place in places)
    yield Path(f"/run/user/{machine.uid}")
    yield from _tmux(machine)
    for variables in BY_VARIABLE.values():
        for variable in variables:
            yield from _named(machine.environ.get(variable, ""))


def _tmux(machine: Machine) -> Iterator[Path]:
    """Who reaches a server of tmux can type into every terminal of the user. `TMUX` is `SOCKET,PID,SESSION`."""
    yield Path(f"/tmp/tmux-{machine.uid}")
    yield from _named(machine.environ.get("TMUX", "").split(",")[0])
    for folder in _named(machine.environ.get("TMUX_TMPDIR", "")):
        yield folder / f"tmux-{machine.uid}"


def _named(value: str) -> Iterator[Path]:
    for part in value.split(":"):
        path = Path(part)
        # `/` or a whole home would hide all that commands need.
        if path.is_absolute() and len(path.parts) > 2 and ".." not in path.parts:
            yield path
