// The parts of the sync engine that programs use under one name.
@_exported public import MartletAntiEntropy
@_exported public import MartletBootstrap
@_exported public import MartletBus
@_exported public import MartletCore
@_exported public import MartletEngine
@_exported public import MartletMerge
@_exported public import MartletReplica
@_exported public import MartletWire
