"""One file of the hub becomes a blob, whatever the connection does meanwhile."""

from collections.abc import Iterator
from dataclasses import dataclass

from app.catalog.hub.client import Hub, Repository
from app.catalog.hub.patience import Patience
from app.catalog.manifest import FileEntry
from app.catalog.problems import HubUnavailable, WrongContent, shown
from app.catalog.progress import Progress
from app.catalog.store.blobs import Blobs
from app.catalog.store.partial import Partial


@dataclass(frozen=True)
class Download:
    """What is brought from where, and how long that is tried."""

    hub: Hub
    repository: Repository
    file: FileEntry
    patience: Patience

    def at(self, completed: int) -> Progress:
        """The event for so many bytes."""
        return Progress(f"pulling {self.file.sha256[:12]}", f"sha256:{self.file.sha256}",
                        self.file.size, completed, self.file.path)

    def into(self, blobs: Blobs, made: Partial) -> Iterator[Progress]:
        """Bring the rest of the file and make it a blob.

        What an earlier try left is read first; if the whole turns out to be wrong, it is brought
        anew, once. Raises WrongContent, NotFound, HubRefused, HubUnavailable, Cancelled and
        OSError; the bytes stay for the next try, unless they are wrong.
        """
        for size in made.read_on():
            self.patience.check()
            yield self.at(size)
        resumed = made.size > 0
        try:
            yield from self._bring(made)
            if resumed and made.sha256 != self.file.sha256:
                made.restart()
                yield from self._bring(made)
        except WrongContent:
            made.discard()
            raise
        try:
            blobs.finish(made, self.file.sha256)
        except WrongContent as error:
            raise WrongContent(f"what {self.hub.endpoint} sends for {shown(self.file.path)} is "
                               f"not what it lists: {error}; start again later") from error

    def _bring(self, made: Partial) -> Iterator[Progress]:
        tries = 0
        while made.size < self.file.size:
            before = made.size
            try:
                yield from self._append(made)
            except HubUnavailable as error:
                tries = 0 if made.size > before else tries
                yield from self.patience.after(error, tries)
                tries += 1

    def _append(self, made: Partial) -> Iterator[Progress]:
        """Bytes of one connection."""
        asked = self.hub.body(self.repository, self.file.path, made.size)
        with self.patience.entering(asked) as body, self.patience.waking(body.interrupt):
            if body.start != made.size:
                made.restart()
            for piece in body.pieces:
                self.patience.check()
                made.write(piece[:self.file.size - made.size])
                yield self.at(made.size)
                if made.size == self.file.size:
                    return
        self.patience.check()
        raise HubUnavailable(f"{self.hub.endpoint} ended {shown(self.file.path)} too early: "
                             "start it again, and it goes on from there", passing=True)
