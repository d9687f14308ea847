"""A php-fpm with the extension, and a place for the files of a test."""

import grp
import json
import os
import pathlib
import pwd
import shutil
import subprocess
import tempfile
import time

from fastcgi import Exchange

EXTENSION = os.environ["BATON_PHP_EXTENSION"]
PHP_FPM = os.environ.get("PHP_FPM", "php-fpm8.2")
AS_ROOT = os.geteuid() == 0
# The workers' user. Not root, which has rights that PHP usually lacks.
WORKER = "nobody" if AS_ROOT else pwd.getpwuid(os.geteuid()).pw_name

# A file is a string once its last change is more than a second ago, by clocks that are cut to seconds.
SETTLED_S = 2.1


# Of a setting that is given twice, php-fpm takes the first.
DEFAULTS = {"baton.threshold": 4095, "output_buffering": 0}


class Site:
    """A directory of scripts and files, a directory for snapshots, and php-fpm with a pool for each set of options."""

    def __init__(self, pools, parent=None, php=()):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="baton-php-", dir=parent))
        self.root.chmod(0o755)
        self.files = self.root / "site"
        self.snapshots = self.root / "snapshots"
        self.log = self.root / "fpm.log"
        for directory in (self.files, self.snapshots):
            directory.mkdir()
            self.give(directory)
        self._start(pools, php)

    def give(self, path):
        """Makes the workers the owners."""
        if AS_ROOT:
            shutil.chown(path, WORKER)
        return path

    def write(self, name, content):
        path = self.files / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        path.chmod(0o644)
        return self.give(path)

    def _start(self, pools, php):
        lines = ["[global]", f"error_log = {self.log}", "daemonize = no"]
        for name, options in pools.items():
            lines += [
                f"[{name}]",
                f"listen = {self.root / name}.sock",
                "listen.mode = 0666",
                "pm = static",
                f"pm.max_children = {options.get('workers', 1)}",
                f"user = {WORKER}",
                f"group = {grp.getgrgid(pwd.getpwnam(WORKER).pw_gid).gr_name}",
                "catch_workers_output = yes",
                "pm.status_path = /status",
                f"php_admin_value[baton.snapshot_dir] = {options.get('snapshots', self.snapshots)}",
                f"php_admin_value[baton.roots] = {options.get('roots', self.files)}",
                f"php_admin_value[session.save_path] = {self.files}",
                "php_admin_value[apc.enabled] = 1",
            ]
            lines += [f"php_admin_value[{key}] = {value}" for key, value in (DEFAULTS | options.get("ini", {})).items()]
        (self.root / "fpm.conf").write_text("\n".join(lines) + "\n")
        command = [PHP_FPM, "--nodaemonize", "--fpm-config", self.root / "fpm.conf", "-d", f"extension={EXTENSION}"]
        command += [word for setting in php for word in ("-d", setting)]
        environment = dict(os.environ)
        self.fpm = subprocess.Popen(command, stderr=subprocess.DEVNULL, env=environment)
        deadline = time.monotonic() + 20
        while not all((self.root / f"{name}.sock").exists() for name in pools):
            assert self.fpm.poll() is None and time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.02)

    def stop(self):
        self.fpm.terminate()
        self.fpm.wait()
        shutil.rmtree(self.root)

    def begin(self, script, zero_copy=True, pool="main", content=b"", **parameters):
        """Sends a request for a script (a path, or its source)."""
        if not isinstance(script, pathlib.Path):
            script = self.write(f"script-{abs(hash(script)):x}.php", script)
        all_parameters = {
            "SCRIPT_FILENAME": script,
            "REQUEST_METHOD": "GET",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "GATEWAY_INTERFACE": "CGI/1.1",
            "REDIRECT_STATUS": "200",
        }
        if zero_copy:
            all_parameters["BATON_ZEROCOPY"] = f"/nowhere:{self.root.resolve()}"
        return Exchange(str(self.root / f"{pool}.sock"), all_parameters | parameters, content)

    def get(self, script, zero_copy=True, pool="main", **parameters):
        return self.begin(script, zero_copy, pool, **parameters).finish()

    def status(self, pool="main"):
        """The counters of the (only) worker of a pool."""
        return json.loads(self.get("<?php echo json_encode(baton_status());", pool=pool).body)
