"""The verbs in names of tools."""

from __future__ import annotations

import re

READS = frozenset(
    re.findall(
        r"\w+",
        """
    browse check compare count describe diff directory explain extract fetch find get grep head help history info
    inspect list log logs look lookup ls measure peek preview query read resolve retrieve review scan search show stat
    stats status summarize summary tail tree validate verify view watch
    """,
    )
)
"""Verbs that look at something."""
CHANGES = frozenset(
    re.findall(
        r"\w+",
        """
    abort accept add allow append apply approve archive assign attach book branch bulk buy call cancel charge checkout
    clean clear click close clone comment commit configure connect copy create delete deploy destroy disable
    disconnect download drag drop duplicate edit emit enable erase eval evaluate exec execute export fill force fork
    format grant import init insert install invite invoke join kill launch leave link lock make merge mkdir modify move
    mutate navigate order overwrite patch pause pay post press prune publish pull purge push put rebase refund
    register reject release reload remove rename replace reply reset restart restore resume revert revoke rm
    rotate run save schedule send set shutdown sign spawn start stash stop submit subscribe swap switch sync tag
    terminate toggle touch transfer trigger truncate type undo uninstall unlink unlock unpublish unset unsubscribe
    update upgrade upload upsert wipe write
    """,
    )
)
"""Verbs that change something."""
VERBS = (
    READS
    | CHANGES
    | frozenset(
        re.findall(
            r"\w+",
            """
    activate adjust aggregate alert allow alter amend analyse analyze annotate answer archive arrange ask assert audit
    backup ban batch begin bind block boot bring bump cache capture change chat check choose clip close collect
    collapse compile complete compose compress compute convert count crawl cut deactivate debug decline decode
    decrypt delegate demote deny deploy detach detect diagnose discard discover dismiss dispatch draft draw drive drain
    dump edit encode encrypt end enrich ensure enter escalate estimate exit expand expire explore express fail fetch
    filter fix flag flush fold forget forward freeze gather generate give go group guess halt hash hdel hget hide
    hold hset ignore incr index infer inform interrupt invalidate keep label lead lend lift limit link lint listen
    llen load locate loop lose lower lpop lpush lrange lrem manage map mark mask match mention mind mirror mock mount
    mute name notify obtain offer open optimize pack pad park parse pass pick pin ping place plan play point poll pop
    predict prepare present proceed process promote prompt propose protect provide provision psubscribe purge queue
    quit quote raise rank rate reach reactivate reassign rebuild receive recommend recover redeploy redirect redo
    reduce refactor refresh refuse reindex reject relate relay rem remember remind render rent reopen repair repeat
    report request require rescan resend reserve resize retire retry return reuse review rewind rewrite roll rollback
    rpop rpush sadd sample sanitize scale scrape scroll seek select sell serve share ship shift shut simulate sleep
    snap snooze sort spend split srem stage star stat steer step store stream stretch subtract suggest sum supply
    suspend sweep sync take talk tap teach tell test throttle throw tidy trace track trade train transcribe transform
    translate transmit trash trim try tune turn unapprove unarchive unassign unban unblock undelete unfold unfollow
    unhide unmark unmask unmount unmute unpack unpause unpin unread unregister unshare unstar untag use value vote
    wait wake walk warm warn wrap xack xadd xdel xgroup xrange xread zadd zrange zrem zip
    """,
        )
    )
)
"""All verbs: a name that begins with one means this verb, however similar another looks."""
