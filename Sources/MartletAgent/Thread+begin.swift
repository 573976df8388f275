import Foundation

extension Thread {
    /// Starts a thread for work that blocks.
    static func begin(_ name: String, _ body: @escaping @Sendable () -> Void) {
        let thread = Thread(block: body)
        thread.name = name
        thread.stackSize = 1 << 20
        thread.start()
    }
}
