// SPDX-License-Identifier: MIT

// The tokens that Mayfly reads or sends, by the names that the SDKs have for them. Clients
// send more, which are skipped.

package rntbd

// Token is the id of a token. Requests and answers have ids of their own, and so have the
// frames that open a channel.
type Token uint16

// tokenHeadBytes is the length of a token's id and type.
const tokenHeadBytes = 3

// Type is the type of a token's value.
type Type uint8

// The types. Small, plain and ULong strings and bytes differ in how their length is sent.
const (
	Byte Type = iota
	UShort
	ULong
	Long
	ULongLong
	LongLong
	Guid
	SmallString
	String
	ULongString
	SmallBytes
	Bytes
	ULongBytes
	Float
	Double

	types
)

// sizes are the lengths of values: fixed, or given by a prefix of so many bytes.
var sizes = [types]struct{ fixed, prefix int }{
	Byte: {1, 0}, UShort: {2, 0}, ULong: {4, 0}, Long: {4, 0}, ULongLong: {8, 0}, LongLong: {8, 0}, Guid: {16, 0},
	SmallString: {0, 1}, String: {0, 2}, ULongString: {0, 4}, SmallBytes: {0, 1}, Bytes: {0, 2}, ULongBytes: {0, 4},
	Float: {4, 0}, Double: {8, 0},
}

// Table has the declared types of tokens: the type and one, or 0 for a token that is not
// listed.
type Table [tableSize]Type

// tableSize is more than the largest id that is listed.
const tableSize = 0x100

func (t *Table) typeOf(id Token) (declared Type, listed bool) {
	if id >= tableSize || t[id] == 0 {
		return 0, false
	}
	return t[id] - 1, true
}

// declaration is a token and its type.
type declaration struct {
	id       Token
	declared Type
}

func newTable(all []declaration) *Table {
	var t Table
	for _, d := range all {
		t[d.id] = d.declared + 1
	}
	return &t
}

// Tokens of requests.
const (
	RequestResourceID                          Token = 0x00
	RequestAuthorizationToken                  Token = 0x01
	RequestPayloadPresent                      Token = 0x02
	RequestDate                                Token = 0x03
	RequestPageSize                            Token = 0x04
	RequestSessionToken                        Token = 0x05
	RequestContinuationToken                   Token = 0x06
	RequestIndexingDirective                   Token = 0x07
	RequestMatch                               Token = 0x08
	RequestPreTriggerInclude                   Token = 0x09
	RequestPostTriggerInclude                  Token = 0x0a
	RequestConsistencyLevel                    Token = 0x10
	RequestReplicaPath                         Token = 0x13
	RequestResourceTokenExpiry                 Token = 0x14
	RequestDatabaseName                        Token = 0x15
	RequestCollectionName                      Token = 0x16
	RequestDocumentName                        Token = 0x17
	RequestUserName                            Token = 0x19
	RequestPermissionName                      Token = 0x1a
	RequestStoredProcedureName                 Token = 0x1b
	RequestUserDefinedFunctionName             Token = 0x1c
	RequestTriggerName                         Token = 0x1d
	RequestConflictName                        Token = 0x20
	RequestClientVersion                       Token = 0x28
	RequestPartitionKey                        Token = 0x2b
	RequestPartitionKeyRangeID                 Token = 0x2c
	RequestCollectionRID                       Token = 0x35
	RequestPartitionKeyRangeName               Token = 0x36
	RequestEnableLogging                       Token = 0x3e
	RequestAIM                                 Token = 0x3f
	RequestPopulateQuotaInfo                   Token = 0x40
	RequestPopulateQueryMetrics                Token = 0x42
	RequestResponseContinuationTokenLimitInKB  Token = 0x43
	RequestPopulatePartitionStatistics         Token = 0x44
	RequestIfModifiedSince                     Token = 0x47
	RequestRemainingTimeInMs                   Token = 0x49
	RequestTargetLSN                           Token = 0x4b
	RequestTargetGlobalCommittedLSN            Token = 0x4c
	RequestTransportRequestID                  Token = 0x4d
	RequestIsReadOnlyScript                    Token = 0x52
	RequestExcludeSystemProperties             Token = 0x57
	RequestStartEpk                            Token = 0x62
	RequestEndEpk                              Token = 0x63
	RequestReadFeedKeyType                     Token = 0x64
	RequestContentSerializationFormat          Token = 0x65
	RequestIsBatchAtomic                       Token = 0x73
	RequestShouldBatchContinueOnError          Token = 0x74
	RequestIsBatchOrdered                      Token = 0x75
	RequestClientEncryptionKeyName             Token = 0x80
	RequestReturnPreference                    Token = 0x82
	RequestMigrateOfferToManualThroughput      Token = 0x85
	RequestMigrateOfferToAutopilot             Token = 0x86
	RequestIntendedCollectionRID               Token = 0x9d
	RequestSDKSupportedCapabilities            Token = 0xa2
	RequestPopulateIndexMetrics                Token = 0xa9
	RequestPopulateAnalyticalMigrationProgress Token = 0xaa
	RequestCorrelatedActivityID                Token = 0xb0
	RequestChangeFeedWireFormatVersion         Token = 0xb2
	RequestPopulateIndexMetricsV2              Token = 0xc2
	RequestSupportedSerializationFormats       Token = 0xc4
	RequestOptimisticDirectExecute             Token = 0xc8
	RequestStartEpkHash                        Token = 0xd2
	RequestEndEpkHash                          Token = 0xd3
	RequestReadConsistencyStrategy             Token = 0xfe
	RequestSupportedQueryFeatures              Token = 0xff
)

// RequestTokens are the types of tokens of requests.
var RequestTokens = newTable([]declaration{
	{RequestResourceID, Bytes},
	{RequestAuthorizationToken, String},
	{RequestPayloadPresent, Byte},
	{RequestDate, SmallString},
	{RequestPageSize, ULong},
	{RequestSessionToken, String},
	{RequestContinuationToken, String},
	{RequestIndexingDirective, Byte},
	{RequestMatch, String},
	{RequestPreTriggerInclude, String},
	{RequestPostTriggerInclude, String},
	{RequestConsistencyLevel, Byte},
	{RequestReplicaPath, String},
	{RequestResourceTokenExpiry, ULong},
	{RequestDatabaseName, String},
	{RequestCollectionName, String},
	{RequestDocumentName, String},
	{RequestUserName, String},
	{RequestPermissionName, String},
	{RequestStoredProcedureName, String},
	{RequestUserDefinedFunctionName, String},
	{RequestTriggerName, String},
	{RequestConflictName, String},
	{RequestClientVersion, SmallString},
	{RequestPartitionKey, String},
	{RequestPartitionKeyRangeID, String},
	{RequestCollectionRID, String},
	{RequestPartitionKeyRangeName, String},
	{RequestEnableLogging, Byte},
	{RequestAIM, String},
	{RequestPopulateQuotaInfo, Byte},
	{RequestPopulateQueryMetrics, Byte},
	{RequestResponseContinuationTokenLimitInKB, ULong},
	{RequestPopulatePartitionStatistics, Byte},
	{RequestIfModifiedSince, String},
	{RequestRemainingTimeInMs, ULong},
	{RequestTargetLSN, LongLong},
	{RequestTargetGlobalCommittedLSN, LongLong},
	{RequestTransportRequestID, ULong},
	{RequestIsReadOnlyScript, Byte},
	{RequestExcludeSystemProperties, Byte},
	{RequestStartEpk, Bytes},
	{RequestEndEpk, Bytes},
	{RequestReadFeedKeyType, Byte},
	{RequestContentSerializationFormat, Byte},
	{RequestIsBatchAtomic, Byte},
	{RequestShouldBatchContinueOnError, Byte},
	{RequestIsBatchOrdered, Byte},
	{RequestClientEncryptionKeyName, String},
	{RequestReturnPreference, Byte},
	{RequestMigrateOfferToManualThroughput, Byte},
	{RequestMigrateOfferToAutopilot, Byte},
	{RequestIntendedCollectionRID, String},
	{RequestSDKSupportedCapabilities, ULong},
	{RequestPopulateIndexMetrics, Byte},
	{RequestPopulateAnalyticalMigrationProgress, Byte},
	{RequestCorrelatedActivityID, Guid},
	{RequestChangeFeedWireFormatVersion, String},
	{RequestPopulateIndexMetricsV2, Byte},
	{RequestSupportedSerializationFormats, Byte},
	{RequestOptimisticDirectExecute, Byte},
	{RequestStartEpkHash, Bytes},
	{RequestEndEpkHash, Bytes},
	{RequestReadConsistencyStrategy, Byte},
	{RequestSupportedQueryFeatures, String},
})

// Tokens of answers.
const (
	ResponsePayloadPresent                     Token = 0x00
	ResponseContinuationToken                  Token = 0x03
	ResponseETag                               Token = 0x04
	ResponseRetryAfterMilliseconds             Token = 0x0c
	ResponseStorageMaxResourceQuota            Token = 0x0e
	ResponseStorageResourceQuotaUsage          Token = 0x0f
	ResponseSchemaVersion                      Token = 0x10
	ResponseLSN                                Token = 0x13
	ResponseItemCount                          Token = 0x14
	ResponseRequestCharge                      Token = 0x15
	ResponseOwnerFullName                      Token = 0x17
	ResponseOwnerID                            Token = 0x18
	ResponseQuorumAckedLSN                     Token = 0x1a
	ResponseRequestValidationFailure           Token = 0x1b
	ResponseSubStatus                          Token = 0x1c
	ResponseCollectionUpdateProgress           Token = 0x1d
	ResponseCurrentWriteQuorum                 Token = 0x1e
	ResponseCurrentReplicaSetSize              Token = 0x1f
	ResponseCollectionLazyIndexProgress        Token = 0x20
	ResponsePartitionKeyRangeID                Token = 0x21
	ResponseLogResults                         Token = 0x25
	ResponseQueryMetrics                       Token = 0x28
	ResponseGlobalCommittedLSN                 Token = 0x29
	ResponseNumberOfReadRegions                Token = 0x30
	ResponseOfferReplacePending                Token = 0x31
	ResponseItemLSN                            Token = 0x32
	ResponseTransportRequestID                 Token = 0x35
	ResponseShareThroughput                    Token = 0x36
	ResponseDisableRntbdChannel                Token = 0x38
	ResponseServerDateTimeUtc                  Token = 0x39
	ResponseLocalLSN                           Token = 0x3a
	ResponseQuorumAckedLocalLSN                Token = 0x3b
	ResponseItemLocalLSN                       Token = 0x3c
	ResponseSessionToken                       Token = 0x3e
	ResponseMinimumRUsForOffer                 Token = 0x42
	ResponseIndexUtilization                   Token = 0x44
	ResponseQueryExecutionInfo                 Token = 0x45
	ResponseBackendRequestDurationMilliseconds Token = 0x51
	ResponseCorrelatedActivityID               Token = 0x52
	ResponseAnalyticalMigrationProgress        Token = 0x59
	ResponseRequiresDistribution               Token = 0x66
)

// ResponseTokens are the types of tokens of answers.
var ResponseTokens = newTable([]declaration{
	{ResponsePayloadPresent, Byte},
	{ResponseContinuationToken, String},
	{ResponseETag, String},
	{ResponseRetryAfterMilliseconds, ULong},
	{ResponseStorageMaxResourceQuota, String},
	{ResponseStorageResourceQuotaUsage, String},
	{ResponseSchemaVersion, SmallString},
	{ResponseLSN, LongLong},
	{ResponseItemCount, ULong},
	{ResponseRequestCharge, Double},
	{ResponseOwnerFullName, String},
	{ResponseOwnerID, String},
	{ResponseQuorumAckedLSN, LongLong},
	{ResponseRequestValidationFailure, Byte},
	{ResponseSubStatus, ULong},
	{ResponseCollectionUpdateProgress, ULong},
	{ResponseCurrentWriteQuorum, ULong},
	{ResponseCurrentReplicaSetSize, ULong},
	{ResponseCollectionLazyIndexProgress, ULong},
	{ResponsePartitionKeyRangeID, String},
	{ResponseLogResults, String},
	{ResponseQueryMetrics, String},
	{ResponseGlobalCommittedLSN, LongLong},
	{ResponseNumberOfReadRegions, ULong},
	{ResponseOfferReplacePending, Byte},
	{ResponseItemLSN, LongLong},
	{ResponseTransportRequestID, ULong},
	{ResponseShareThroughput, Byte},
	{ResponseDisableRntbdChannel, Byte},
	{ResponseServerDateTimeUtc, SmallString},
	{ResponseLocalLSN, LongLong},
	{ResponseQuorumAckedLocalLSN, LongLong},
	{ResponseItemLocalLSN, LongLong},
	{ResponseSessionToken, String},
	{ResponseMinimumRUsForOffer, ULong},
	{ResponseIndexUtilization, String},
	{ResponseQueryExecutionInfo, String},
	{ResponseBackendRequestDurationMilliseconds, Double},
	{ResponseCorrelatedActivityID, Guid},
	{ResponseAnalyticalMigrationProgress, ULong},
	{ResponseRequiresDistribution, Byte},
})

// Tokens of the frame that opens a channel.
const (
	ContextProtocolVersion           Token = 0x00
	ContextClientVersion             Token = 0x01
	ContextUserAgent                 Token = 0x02
	ContextCallerID                  Token = 0x03
	ContextEnableChannelMultiplexing Token = 0x04
)

// ContextTokens are the types of tokens of the frame that opens a channel.
var ContextTokens = newTable([]declaration{
	{ContextProtocolVersion, ULong},
	{ContextClientVersion, SmallString},
	{ContextUserAgent, SmallString},
	{ContextCallerID, Byte},
	{ContextEnableChannelMultiplexing, Byte},
})

// Tokens of the answer to it.
const (
	AcceptedProtocolVersion                 Token = 0x00
	AcceptedClientVersion                   Token = 0x01
	AcceptedServerAgent                     Token = 0x02
	AcceptedServerVersion                   Token = 0x03
	AcceptedIdleTimeoutInSeconds            Token = 0x04
	AcceptedUnauthenticatedTimeoutInSeconds Token = 0x05
)

// AcceptedTokens are the types of tokens of the answer to it.
var AcceptedTokens = newTable([]declaration{
	{AcceptedProtocolVersion, ULong},
	{AcceptedClientVersion, SmallString},
	{AcceptedServerAgent, SmallString},
	{AcceptedServerVersion, SmallString},
	{AcceptedIdleTimeoutInSeconds, ULong},
	{AcceptedUnauthenticatedTimeoutInSeconds, ULong},
})
