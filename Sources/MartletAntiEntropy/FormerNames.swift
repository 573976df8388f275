@available(*, deprecated, renamed: "AntiEntropy")
public typealias Checker = AntiEntropy

@available(*, deprecated, renamed: "AntiEntropyConfiguration")
public typealias CheckConfiguration = AntiEntropyConfiguration

@available(*, deprecated, renamed: "AntiEntropyProgress")
public typealias CheckProgress = AntiEntropyProgress
