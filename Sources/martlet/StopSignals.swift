import Foundation

/// The signals that stop a command, SIGTERM and Ctrl-C, before a service group handles them.
enum StopSignals {
    /// Ends the process with exit code 0 at each of them, until a service group handles them. To be called before the
    /// store is opened, which may take a while.
    ///
    /// The kernel ends other processes by itself, but from the first process of a container it withholds signals that
    /// this does not handle. The store survives that, as it survives any kill.
    static func endTheProcess() {
        for number in [SIGTERM, SIGINT] { signal(number) { _ in _exit(0) } }
    }
}
