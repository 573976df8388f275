@_exported public import MartletBus
@_exported public import MartletCore
@_exported public import MartletMerge
@_exported public import MartletWire
