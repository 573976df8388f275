import Foundation
import MartletAgent
import MartletStore
import MartletSync

/// The parameters of `/wait`: `?published`, `?on=NODE` (may be repeated) or `?on-all`, with `timeout=30s` and
/// `through=TOKEN`.
struct WaitRequest: Equatable {
    var receivers: Delivery.Receivers
    var timeout = Duration.seconds(30)
    /// Nil: through the last commit at the time of the request.
    var through: HistoryToken?

    static let longest = Duration.seconds(300)

    /// - Throws: ``/MartletCore/StoreError`` with code `.invalidArgument` if the request is invalid.
    init(_ request: HTTPRequest) throws {
        var ways: Set<String> = []
        var nodes: [String] = []
        for item in URLComponents(string: request.target)?.queryItems ?? [] {
            let value = item.value ?? ""
            switch item.name {
            case "published", "on-all":
                guard value.isEmpty else { throw Self.error("\(item.name): takes no value.") }
                ways.insert(item.name)
            case "on":
                guard !value.isEmpty else { throw Self.error("on: must name a node, such as on=till-2.") }
                ways.insert(item.name)
                nodes.append(value)
            case "timeout":
                guard let time = Duration(text: value), time <= Self.longest else {
                    throw Self.error("timeout: must be a time such as 500ms, 30s or 5m, at most 5m.")
                }
                timeout = time
            case "through":
                guard let token = HistoryToken(value) else {
                    throw Self.error("through: must be a history token, as Store.writeTransaction returns it.")
                }
                through = token
            default: throw Self.error("\(item.name): unknown parameter.")
            }
        }
        guard ways.count == 1 else { throw Self.error("Specify what to wait for: published, on=NODE or on-all.") }
        receivers = ways.contains("published") ? .broker : ways.contains("on") ? .nodes(nodes) : .all
    }

    private static func error(_ text: String) -> StoreError {
        StoreError(
            .invalidArgument, text, hint: "For example /wait?on=till-2&timeout=10s, /wait?on-all or /wait?published.")
    }
}
