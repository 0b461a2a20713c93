"""All errors of evictstream, one tree.

    EvictstreamError                      70  base; raised as itself by nothing
    ├── WrongUseError                      2  the caller asked for something that cannot be
    │   ├── ObjectFileError                2  a file holds no objects of Kubernetes that can be read
    │   └── SettingsError                  2  a setting is unknown, malformed or contradicts another
    ├── FoundProblemError                  1  evictstream is fine, what it looked at is not
    │   ├── AddressTakenError              1  health cannot be served where it is wanted
    │   ├── EndSilentError                 1  a feed or executor that is looked at shows nothing
    │   ├── RecordingError                 1  a recording cannot be read any further
    │   ├── EngineError                    1  a worker, or one of its partitions, cannot go on
    │   │   ├── PartitionLostError         1  fenced, timed out or cut off: take it over again
    │   │   ├── ProduceRefusedError        1  the broker will never take what has to be written
    │   │   ├── TakeoverFailedError        1  a partition was lost again and again
    │   │   ├── StateMissingError          1  an empty changelog beside committed group offsets
    │   │   ├── StateUnreadableError       1  something in a changelog is no row
    │   │   ├── OtherStateVersionError     1  an empty changelog beside one of another version
    │   │   ├── InputReplacedError         1  a position lies beyond the end of its input
    │   │   ├── InputTruncatedError        1  input expired before it was read
    │   │   ├── InputUnreadableError       1  the broker refuses input, or it arrives damaged
    │   │   ├── AssignmentBrokenError      1  the group split what belongs together
    │   │   ├── InstanceReplacedError      1  another process has joined under the same instance id
    │   │   ├── UncleanStopError           1  asked to stop, but the group could not be left in time
    │   │   └── WorkerStuckError           1  something has been awaited for longer than its limit
    │   ├── KubernetesError                1  an API server cannot be used as it has to be
    │   │   ├── CredentialsError           1  there are none, or they cannot be read
    │   │   ├── ClusterMovedError          1  a kubeconfig leads elsewhere than when the process began
    │   │   ├── ClusterChangedError        1  another cluster answers at the same address
    │   │   ├── ApiUnreachableError        1  no answer, or half of one
    │   │   ├── NotSentError               1  its time was over before it could be sent
    │   │   ├── ApiRefusedError            1  an answer that refuses
    │   │   ├── ClusterNameTakenError      1  another cluster is fed under this name
    │   │   ├── MissingRightsError         1  an executor may not do what its mode needs
    │   │   └── ApiNotServedError          1  an API server does not serve what a mode needs
    │   └── BrokerError                    1  Kafka, found or started, is not as needed
    │       ├── BrokerUnreachableError     1  no broker answered in time
    │       ├── BrokerUnusableError        1  what answers does not fit the settings
    │       ├── BrokerRefusedError         1  Kafka answered with a refusal
    │       ├── TopicsDifferError          1  topics are not as they must be
    │       ├── ContainerUnavailableError  1  no container engine answers, or the container did not start
    │       └── EmbeddedBrokerError        1  the embedded Kafka could not be had
    │           ├── PlaceUnusableError     1  a port or a folder is taken, or cannot be written
    │           ├── EmbeddedMissingError   1  the extra is not installed
    │           ├── CacheUnusableError     1  its files cannot be kept
    │           ├── DownloadRefusedError   1  its files could not be downloaded
    │           ├── FileMismatchError      1  a downloaded file is not the one that was locked
    │           └── BrokerFailedError      1  its process ended, or did not answer in time
    └── InternalFailureError              70  an invariant of evictstream was broken

The number is the exit code of a command that ends with this error. Client libraries' exceptions do not leave the module
that talks to the library: they are the `__cause__` of one of these. An error says what is wrong and what to do next,
carries what it says as fields, and never holds a secret. A bad *record* is none of these: it is data, and goes to the
dead letters. `models` knows none of them: an invariant that it finds broken is an error of its own, such as
`TransitionError`, and ends a command with 70 as any exception does that nobody expects.
"""

from evictstream.streams.errors.base import (
    AddressTakenError,
    EndSilentError,
    EvictstreamError,
    ExitCode,
    FoundProblemError,
    InternalFailureError,
    ObjectFileError,
    RecordingError,
    SettingsError,
    WrongUseError,
)
from evictstream.streams.errors.broker import (
    BrokerError,
    BrokerFailedError,
    BrokerRefusedError,
    BrokerUnreachableError,
    BrokerUnusableError,
    CacheUnusableError,
    ContainerUnavailableError,
    DownloadRefusedError,
    EmbeddedBrokerError,
    EmbeddedMissingError,
    FileMismatchError,
    PlaceUnusableError,
    TopicsDifferError,
)
from evictstream.streams.errors.engine import (
    AssignmentBrokenError,
    EngineError,
    InputReplacedError,
    InputTruncatedError,
    InputUnreadableError,
    InstanceReplacedError,
    OtherStateVersionError,
    PartitionLostError,
    ProduceRefusedError,
    StateMissingError,
    StateUnreadableError,
    TakeoverFailedError,
    UncleanStopError,
    WorkerStuckError,
)
from evictstream.streams.errors.kubernetes import (
    ApiNotServedError,
    ApiRefusedError,
    ApiUnreachableError,
    ClusterChangedError,
    ClusterMovedError,
    ClusterNameTakenError,
    CredentialsError,
    KubernetesError,
    MissingRightsError,
    NotSentError,
)

__all__ = [
    "AddressTakenError",
    "ApiNotServedError",
    "ApiRefusedError",
    "ApiUnreachableError",
    "AssignmentBrokenError",
    "BrokerError",
    "BrokerFailedError",
    "BrokerRefusedError",
    "BrokerUnreachableError",
    "BrokerUnusableError",
    "CacheUnusableError",
    "ClusterChangedError",
    "ClusterMovedError",
    "ClusterNameTakenError",
    "ContainerUnavailableError",
    "CredentialsError",
    "DownloadRefusedError",
    "EmbeddedBrokerError",
    "EmbeddedMissingError",
    "EndSilentError",
    "EngineError",
    "EvictstreamError",
    "ExitCode",
    "FileMismatchError",
    "FoundProblemError",
    "InputReplacedError",
    "InputTruncatedError",
    "InputUnreadableError",
    "InstanceReplacedError",
    "InternalFailureError",
    "KubernetesError",
    "MissingRightsError",
    "NotSentError",
    "ObjectFileError",
    "OtherStateVersionError",
    "PartitionLostError",
    "PlaceUnusableError",
    "ProduceRefusedError",
    "RecordingError",
    "SettingsError",
    "StateMissingError",
    "StateUnreadableError",
    "TakeoverFailedError",
    "TopicsDifferError",
    "UncleanStopError",
    "WorkerStuckError",
    "WrongUseError",
]
