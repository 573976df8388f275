public import Foundation

/// A separate folder for one test, deleted with the last reference to it.
public final class TemporaryFolder: Sendable {
    public let url: URL

    public init() throws {
        SQLiteClock.install()
        url = FileManager.default.temporaryDirectory.appendingPathComponent("martlet-test-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(at: url)
    }

    public func path(_ name: String) -> String { url.appendingPathComponent(name).path }
}
