"""A served Bough tells a user of the end of a workflow, also after it was killed before."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.api.receiving import receiving_hooks, receiving_mail
from tests.e2e.local import hosting


def test_a_user_is_told_by_webhook_and_mail_also_after_a_crash(tmp_path: Path):
    with receiving_hooks() as hooks, receiving_mail() as mails:
        rules = tmp_path / "notifications.yaml"
        rules.write_text(
            f"webhooks: ['{hooks.address}']\n"
            f"email: {{server: 127.0.0.1, port: {mails.port}, security: none, "
            "sender: bough@example.com, domains: [example.com]}\n"
        )
        with hosting(tmp_path, 1, "--notifications", str(rules)) as host:
            local = host.start()
            local.pool("p", 1)
            url = f"url={hooks.address}/told"
            local.done("credential", "set", "webhook", "--type", "GENERIC", "--payload", url)
            for channel in ("webhook", "email"):
                local.done("profile", "set", "notifications", channel)
            first = local.run("p", 1, "NORMAL")
            local.finish(first)
            local.until(lambda: len(hooks.got) == len(mails.got) == 1, lambda: hooks.got)
            assert (first, "COMPLETED") == (
                hooks.got[0][1]["workflow"],
                hooks.got[0][1]["status"],
            )
            second = local.run("p", 1, "NORMAL")
            (process,) = local.mains(second)
            hooks.statuses = [500]
            host.stop(signal.SIGKILL)
            local.tell(process)
            local = host.start()
            local.until(
                lambda: [second, second] == [each["workflow"] for _, each in hooks.got[1:3]],
                lambda: hooks.got,
            )
            local.until(lambda: len(mails.got) == 2, lambda: mails.got)
