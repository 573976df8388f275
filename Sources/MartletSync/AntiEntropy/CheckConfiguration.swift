/// How nodes check that they agree.
public struct CheckConfiguration: Sendable, Equatable {
    /// How long after a check that it agreed with a node begins another one. Zero: it begins none by itself, and takes no part in
    /// those of others.
    public var interval: Duration = .seconds(21_600)

    public init() {}

    /// Every problem with the values, as `field: what is wrong with the value`.
    public func validate() -> [String] {
        interval < .zero ? ["interval: \(interval) is negative"] : []
    }
}
